"use strict";(()=>{var{abs,ceil,floor,max,min,round}=Math,range=count=>[...Array(count).keys()],clamp=(value,high)=>min(
high,max(0,value)),unpacked=new WeakMap;function unpack(packed){let cached=unpacked.get(packed);if(cached)
return cached;let{shape,low,high,uint16}=packed,view=new DataView(Uint8Array.from(atob(uint16),letter=>letter.
charCodeAt(0)).buffer),data=Float32Array.from({length:view.byteLength/2},(_,i)=>low+(high-low)*view.
getUint16(2*i,!0)/65535);return unpacked.set(packed,{shape,data}),{shape,data}}var h=(tag,attributes,...children)=>populate(document.createElement(tag),attributes,children),svg=(tag,attributes,...children)=>populate(
document.createElementNS("http://www.w3.org/2000/svg",tag),{...tag==="svg"&&{"aria-hidden":!0},...attributes},
children),div=(style,...children)=>h("div",{class:style||!1},children),span=(style,...children)=>h("\
span",{class:style||!1},children),para=(style,...children)=>h("p",{class:style||!1},children),note=(...text)=>para(
"note",text),stack=(...content)=>div("stack",content),facts=(pairs,style="facts")=>h("dl",{class:style},
pairs.map(([name,value])=>div("",h("dt",{},name),h("dd",{dir:"auto"},value)))),aria=(node,name,value)=>node.
setAttribute(`aria-${name}`,String(value)),byId=id=>document.getElementById(id);function populate(node,attributes,children){
for(let[name,value]of Object.entries(attributes||{}))value==null||value===!1||(typeof value=="functi\
on"?node.addEventListener(name.slice(2),value):name==="style"?Object.assign(node.style,value):node.setAttribute(
name,value===!0&&!name.startsWith("aria")?"":String(value)));return node.append(...children.flat(9).
filter(Boolean)),node}var announce=text=>{byId("live").textContent=text};function download(name,type,...parts){
let address=URL.createObjectURL(new Blob(parts,{type}));h("a",{href:address,download:name}).click(),
setTimeout(()=>URL.revokeObjectURL(address),1e3)}function onResize(holder2,draw){let width=0;return new ResizeObserver(
()=>{let newWidth=floor(holder2.clientWidth);newWidth&&newWidth!==width&&draw(width=newWidth)}).observe(
holder2),holder2}var mh={strings:{},language:"en",key:""},DEFAULT_STATE={tab:"",model:"",q:"",beam:"",sentence:0,prefix:"",
target:"",padding:0,more:0,at:0,kind:"",layer:-1,head:"mean",other:"",threshold:0,step:0,part:0,checkpoint:-1,
symbol:"",temperature:1,topk:0,topp:1,query:0,stage:0,off:"",mask:1,positions:1},FRACTIONS=["thresho\
ld","temperature","topp"],OWN_OUTPUT={prefix:"",target:"",more:0,at:0,step:0,query:0},AS_TRAINED={off:"",
mask:1,positions:1},state={...DEFAULT_STATE};function readAddress(){let[path,query]=location.hash.replace(
/^#\/?/,"").split("?"),parameters=new URLSearchParams(query);for(let[name,initial]of Object.entries(
DEFAULT_STATE)){let value=name==="tab"?path:parameters.get(name),number=Number(value),isValid=number>=
min(initial,0)&&(Number.isInteger(number)||FRACTIONS.includes(name));Object.assign(state,{[name]:value?
typeof initial=="string"?value:isValid&&number<1/0?number:initial:initial})}}function addressOf(changes){
let{tab,...others}={...state,...changes},changed=Object.entries(others).filter(([name,value])=>value!==
Object(DEFAULT_STATE)[name]),query=new URLSearchParams(changed.map(([name,value])=>[name,String(value)]));
return`#/${tab}${changed.length?`?${query}`:""}`}function change(changes){let newTab=changes.tab&&changes.
tab!==state.tab;Object.assign(state,changes),history[newTab?"pushState":"replaceState"](null,"",addressOf())}
function goTo(changes){change(changes),mh.render()}function update(changes){change(changes),mh.render(
!0)}function saveSetting(name,value){try{localStorage.setItem(`manyheads-${name}`,value)}catch{}}function savedSetting(name){
try{return localStorage.getItem(`manyheads-${name}`)}catch{return null}}var localized=key=>mh.strings[mh.language]?.[key],readsLeft=text=>new RegExp("^\\P{L}*[\\u0590-\\u08ff\\\
ufb1d-\\ufdff\\ufe70-\\ufefc]","u").test(text.replace(/<[^>]*>/g,"")),isolate=text=>readsLeft(text)?
`\u2067${text.replace(/<[^>]*>/g,"\u200E$&\u200E")}\u2069`:text,t=(key,values={})=>(localized(key)??
key).replace(/\{(\w+)\}/g,(match,name)=>isolate(String(values[name]??match)));function languageName(code){
try{return new Intl.DisplayNames(mh.language,{type:"language"}).of(code)??code}catch{return code}}var columnTitles=names=>names.
split(" ").map(name=>t(`column.${name}`));function n(value,digits=3){return value==null?"\u2013":value.
toLocaleString(mh.language,{minimumFractionDigits:digits,maximumFractionDigits:digits}).replace("-",
"\u2212")}var integer=value=>n(value,0);function compact(value){let size=abs(value);return size>=1e4?
size>=1e6?`${n(value/1e6,1)}M`:`${integer(value/1e3)}k`:size&&size<.001?value.toExponential(1).replace(
/-/g,"\u2212"):n(value,size>=100||Number.isInteger(value)?0:size>=1?2:4)}var SIGNS={"\u2581":"\u2423",
"\n":"\u21B5","	":"\u21E5"},pieceText=piece=>(piece||"\u2205").replace(/[▁\n\t]/g,sign=>SIGNS[sign]);function debounce(milliseconds,call){let timer;return()=>{clearTimeout(timer),timer=setTimeout(call,
milliseconds)}}function roving(holder2,elements,current,onMove=()=>{}){let setTabStop=to=>elements.forEach(
(element,i)=>{element.tabIndex=i===to?0:-1});return setTabStop(clamp(current||0,elements.length-1)),
holder2.addEventListener("keydown",e=>{let steps={[`Arrow${holder2.dir==="rtl"?"Left":"Right"}`]:1,ArrowDown:1,
[`Arrow${holder2.dir==="rtl"?"Right":"Left"}`]:-1,ArrowUp:-1,Home:-elements.length,End:elements.length},
from=elements.indexOf(document.activeElement);if(from<0||!(e.key in steps)||e.altKey||e.ctrlKey||e.metaKey)
return;e.preventDefault();let to=clamp(from+steps[e.key],elements.length-1);setTabStop(to),elements[to].
focus(),onMove(to)}),holder2}var tokenRow=(label,buttons,pieces,current)=>roving(h("div",{class:"tok\
ens",role:"group",dir:readsLeft(pieces.join(""))?"rtl":"ltr","aria-label":label},buttons),buttons,current),
setPressed=(buttons,index)=>buttons.forEach((element,i)=>aria(element,"pressed",i===index)),button=(text,onclick,attributes)=>h(
"button",{type:"button",onclick,...attributes},text),linkButton=(text,onclick,label)=>button(text,onclick,
{class:"quiet","aria-label":label});function copyButton(name,text,label){let copy=linkButton(name,async()=>{
let done=await navigator.clipboard?.writeText(text()).then(()=>!0,()=>!1);copy.textContent=t(done?"c\
opied":"copy_failed"),announce(copy.textContent)},label);return copy}function choice(label,options,value,onChoose){
let list=h("select",{"data-focus":label,onchange:()=>onChoose(list.value)},options.map(option=>[option,
option].flat().slice(-2)).map(([option,text])=>h("option",{value:option},String(text))));return list.
value=String(value),h("label",{class:"field"},span("",label),list)}var setChoice=(field,value)=>{field.
lastChild.value=value};function slider(label,{show=String,value,...limits},onMove){let shown=h("b",{},
show(value)),bar=h("input",{type:"range",...limits,"aria-valuetext":show(value),oninput:()=>{shown.textContent=
show(Number(bar.value)),aria(bar,"valuetext",shown.textContent),onMove(Number(bar.value))}});return bar.
value=String(value),h("label",{class:"field slider"},span("",label," ",shown),bar)}function stepper({
label,last,value,time,onEnd},show){let field=slider(label,{min:0,max:last,value,show:step=>`${step+1}\
 / ${last+1}`},show),bar=field.querySelector("input"),timer=0,stop=()=>{clearInterval(timer),timer=0,
play.textContent=t("step.play")},go=step=>{bar.value=String(step),bar.dispatchEvent(new Event("input"))},
advance=()=>{let step=Number(bar.value)<last?Number(bar.value)+1:onEnd?.()??0;go(step),timer&&(!step||
!bar.isConnected||step===last&&!onEnd)&&stop()},start2=()=>{advance(),timer=window.setInterval(advance,
time),play.textContent=t("step.pause")},play=button(t("step.play"),()=>(timer?stop:start2)(),{class:"\
primary"}),isStill=matchMedia("(prefers-reduced-motion: reduce)").matches;return{field:div("controls\
 stepper",field,!isStill&&play,button(t("step.next"),()=>{stop(),advance()})),set:step=>{stop(),go(step)}}}
var checkbox=(label,checked,onChange)=>h("label",{class:"field check"},h("input",{type:"checkbox","d\
ata-focus":label,checked,onchange:e=>onChange(e.target.checked)}),span("",label));function wordDifferences(text,other){let[words,otherWords]=[text,other].map(line=>line.split(" ").filter(
Boolean)),lengths=[...words,""].map(()=>[...otherWords,""].map(()=>0));for(let i2=words.length-1;i2>=
0;i2-=1)for(let j2=otherWords.length-1;j2>=0;j2-=1)lengths[i2][j2]=words[i2]===otherWords[j2]?lengths[i2+
1][j2+1]+1:max(lengths[i2+1][j2],lengths[i2][j2+1]);let found=[],[i,j]=[0,0];for(;i<words.length||j<
otherWords.length;){let same=words[i]===otherWords[j],gone=!same&&(i===words.length||j<otherWords.length&&
lengths[i][j+1]>=lengths[i+1][j]);found.push(same?[words[i],""]:gone?[otherWords[j],"gone"]:[words[i],
"new"]),(same||!gone)&&(i+=1),(same||gone)&&(j+=1)}return found}var markedWords=words=>span("",words.
map(([word,change2],i)=>[i?" ":"",change2?h(change2==="new"?"u":"del",{class:"different"},word):word])),
markDifferences=(text,other)=>markedWords(wordDifferences(text,other));var NOT_IN_PICTURE=".hidden, .picked, input, select",SCROLLING=".matrix-box, .tree-scroll, .heads, .\
scroll, .scroll-x, .formula",DRAWN_PROPERTIES=["fill","stroke","stroke-width","stroke-dasharray","op\
acity","visibility","text-anchor","font-size","font-weight","font-family"],PNG_SCALE=2;function pictureOf(section){
let scrolling=[...section.querySelectorAll(SCROLLING)].map(box=>({box,left:box.scrollLeft,top:box.scrollTop,
hidden:box.scrollWidth-box.clientWidth})),hidden=max(0,...scrolling.map(box=>box.hidden));section.style.
width=`${section.offsetWidth+hidden}px`,section.classList.add("saving");let picture=drawFigure(section);
section.classList.remove("saving"),section.style.width="";for(let{box,left,top}of scrolling)box.scrollTo(
left,top);return picture}function drawFigure(section){let origin=section.getBoundingClientRect(),size={
width:origin.width,height:0},root=svg("svg",{"aria-hidden":!1}),fills=svg("defs");function place({left,
top,width,height}){let[x,y]=[left-origin.left,top-origin.top];return Object.assign(size,{width:max(size.
width,x+width),height:max(size.height,y+height)}),{x,y,width,height}}function fillOf({backgroundColor,
backgroundImage}){let colours=backgroundImage.match(/rgba?\([^)]*\)|color\([^)]*\)/g);if(!colours)return backgroundColor;
let id=`fill${fills.childElementCount}`;return fills.append(backgroundImage.startsWith("repeating")?
svg("pattern",{id,width:6,height:6,patternUnits:"userSpaceOnUse",patternTransform:"rotate(45)"},svg(
"rect",{width:2,height:6,fill:colours[0]})):svg("linearGradient",{id},colours.map((colour,i)=>svg("s\
top",{offset:i/(colours.length-1),"stop-color":colour})))),`url(#${id})`}function boxOf(element,style){
let box=place(element.getBoundingClientRect()),fill=fillOf(style),border=side=>({width:parseFloat(style[`\
border${side}Width`]),colour:style[`border${side}Color`]}),[top,right,bottom,left]=[border("Top"),border(
"Right"),border("Bottom"),border("Left")],isFrame=top.width>0&&left.width>0,isClear=/^rgba\(.* 0\)$|\/ 0\)$|^transparent$/.
test(fill),isDouble=style.borderTopStyle==="double",[x,y,end,base]=[box.x,box.y,box.x+box.width,box.
y+box.height],lines=[[top,x,y,end,y],[right,end,y,end,base],[bottom,x,base,end,base],[left,x,y,x,base]],
thickness=isDouble?top.width/3:top.width,frame=(inset,fill2)=>svg("rect",{x:x+inset,y:y+inset,width:max(
0,box.width-2*inset),height:max(0,box.height-2*inset),rx:min(parseFloat(style.borderRadius)||0,box.height/
2),fill:fill2,stroke:isFrame&&top.colour,"stroke-width":thickness,"stroke-dasharray":style.borderTopStyle===
"dashed"&&"4 3"});return[...isFrame||!isClear?[frame(thickness/2,isClear?"none":fill)]:[],...isDouble?
[frame(2.5*thickness,"none")]:[],...isFrame?[]:lines.filter(([{width}])=>width>0).map(([{width,colour},
x1,y1,x2,y2])=>svg("line",{x1,y1,x2,y2,stroke:colour,"stroke-width":width}))]}function textOf(node,style){
let fontSize=parseFloat(style.fontSize);if(!fontSize||!node.data.trim())return[];let lines=[],isUpright=style.
writingMode==="vertical-rl",part=document.createRange();for(let{0:letter,index}of node.data.matchAll(
new RegExp("\\S\\p{M}*|\\s+","gu"))){part.setStart(node,index),part.setEnd(node,index+letter.length);
let box=part.getBoundingClientRect(),line=lines.at(-1);line&&(!box.width||abs(line.box.top-box.top)<
fontSize/2||isUpright)?line.text+=letter.trim()?letter:" ":letter.trim()&&lines.push({text:letter,box}),
letter.trim()&&place(box)}return lines.map(({text,box})=>{let{x,y,width,height}=place(box),[left,base]=isUpright?
[x+width/2+fontSize*.35,y+height]:[x,y+height/2+fontSize*.35];return svg("text",{x:left,y:base,fill:style.
color,"font-size":fontSize,"font-family":style.fontFamily,"font-weight":style.fontWeight,"font-style":style.
fontStyle,"text-decoration":style.textDecorationLine,transform:isUpright&&`rotate(-90 ${left} ${base}\
)`},text)})}function copyOf(drawing){let copy=drawing.cloneNode(!0),copies=[copy,...copy.querySelectorAll(
"*")];return[drawing,...drawing.querySelectorAll("*")].forEach((element,i)=>{let style=getComputedStyle(
element);for(let name of DRAWN_PROPERTIES)copies[i].setAttribute(name,style.getPropertyValue(name));
for(let name of["class","href","tabindex","aria-label"])copies[i].removeAttribute(name)}),populate(copy,
{...place(drawing.getBoundingClientRect()),overflow:"visible"},[])}function signOf(element,{color}){
let{x,y,width,height}=place(element.getBoundingClientRect()),line={stroke:color,"stroke-width":1,fill:"\
none"};return element.localName==="msqrt"?[svg("path",{...line,d:`M${x} ${y+height*.6}L${x+4} ${y+height}\
L${x+9} ${y+1}H${x+width}`})]:[svg("path",{...line,d:`M${x} ${place(element.children[1].getBoundingClientRect()).
y-1}h${width}`})]}function draw(node){let parent=node.parentElement;if(node instanceof Text)return parent?
textOf(node,getComputedStyle(parent)):[];if(!(node instanceof Element)||node.matches(NOT_IN_PICTURE)||
!node.getClientRects().length)return[];let style=getComputedStyle(node);return style.visibility==="h\
idden"?[]:node instanceof SVGSVGElement?[copyOf(node)]:node instanceof HTMLCanvasElement?[svg("image",
{...place(node.getBoundingClientRect()),href:node.toDataURL(),preserveAspectRatio:"none","image-rend\
ering":"pixelated"})]:[svg("g",{opacity:style.opacity!=="1"&&style.opacity},boxOf(node,style),/^m(sqrt|frac)$/.
test(node.localName)&&signOf(node,style),[...node.childNodes].map(draw))]}let drawn=draw(section);return populate(
root,{...size,viewBox:`0 0 ${size.width} ${size.height}`},[fills,svg("rect",{...size,fill:getComputedStyle(
section).backgroundColor}),drawn])}async function savePicture(section,key,format){let picture=pictureOf(
section),text=new XMLSerializer().serializeToString(picture);if(format==="svg")return download(`${key}\
.svg`,"image/svg+xml",text);let image=new Image;image.src=`data:image/svg+xml;charset=utf-8,${encodeURIComponent(
text)}`,await image.decode();let canvas=h("canvas",{width:round(PNG_SCALE*image.width),height:round(
PNG_SCALE*image.height)});canvas.getContext("2d")?.drawImage(image,0,0,canvas.width,canvas.height),canvas.
toBlob(blob=>{blob&&download(`${key}.png`,"image/png",blob)})}var MAX_ROWS=2e3;function figure({key,values,title=t(key,values),about=localized(`${key}_note`)&&t(`${key}\
_note`,values),chart,table}){let holder2=h("div",{class:"figure-table",hidden:!0}),toggle=button(t("\
table.show"),()=>{table&&!holder2.firstChild&&holder2.append(tableOf(table(),title)),holder2.hidden=
!holder2.hidden,aria(toggle,"expanded",!holder2.hidden),toggle.textContent=t(holder2.hidden?"table.s\
how":"table.hide")},{class:"quiet","aria-expanded":"false"}),save=linkButton("CSV",()=>table&&download(
`${key}.csv`,"text/csv","\uFEFF",csvOf(table())),t("table.csv",{title})),pictures=["svg","png"].map(
format=>linkButton(format.toUpperCase(),()=>savePicture(section,key,format),t("figure.save",{format:format.
toUpperCase(),title}))),section=h("section",{class:"figure","data-figure":key},div("figure-head",h("\
h2",{},title),table&&div("actions",toggle,save,pictures)),about&&note(about),chart,holder2);return section}
function tableOf([columns,rows],caption){let attributes=value=>typeof value=="number"?{class:"number"}:
{dir:"auto"},cell=value=>h("td",attributes(value),typeof value=="number"?(Number.isInteger(value)?integer:
compact)(value):value??"\u2013");return h("div",{class:"scroll",tabindex:0,role:"region","aria-label":caption},
h("table",{class:"values"},h("thead",{},h("tr",{},columns.map((title,i)=>h("th",{scope:"col",...attributes(
rows[0]?.[i])},title)))),h("tbody",{},rows.slice(0,MAX_ROWS).map(row=>h("tr",{},row.map(cell))))),rows.
length>MAX_ROWS&&note(t("table.more",{count:integer(rows.length-MAX_ROWS)})))}function csvOf([columns,
rows]){let cell=value=>{let text=value instanceof Node?value.textContent??"":String(value??"");return`\
"${typeof value!="number"&&/^[=+\-@\t\r]./.test(text)?"'":""}${text.replaceAll('"','""')}"`};return[
columns,...rows].map(row=>`${row.map(cell).join(",")}\r
`).join("")}var bars=(items,high=max(...items.map(([,value])=>abs(value)),1e-9))=>h("ul",{class:"bar\
s"},items.map(([label,value,text,action,strong])=>h("li",{class:strong&&"strong"},h("span",{class:"b\
ar-label",dir:"auto"},label),span(value<0?"bar below":"bar",h("span",{style:{width:`${max(.5,100*abs(
value)/high)}%`}})),span("bar-value",text),action)));var workerText=byId("manyheads-worker"),hasWorker=!!workerText,modelParts=hasWorker&&!isDamaged()?takeModel():
null,pending=new Map,worker=null,requestCount=0;function isDamaged(){let low=1,high=0;for(let element of[
workerText,document.getElementById("manyheads-model"),...document.querySelectorAll(".manyheads-tenso\
rs")]){let bytes=new TextEncoder().encode(element?.textContent);for(let start2=0;start2<bytes.length;start2+=
2048){let end=min(start2+2048,bytes.length);for(let i=start2;i<end;i+=1)low=low+bytes[i]|0,high=high+
low|0;low%=65521,high%=65521}}return workerText.dataset.checksum!==String(high*65536+low)}function takeModel(){
let elements=[byId("manyheads-model"),...document.querySelectorAll(".manyheads-tensors")],[description,
...chunks]=elements.map(element=>element.textContent??"");for(let element of elements)element.remove();
return{code:new Blob([workerText.textContent],{type:"text/javascript"}),messages:[JSON.parse(description),
...chunks.map(text=>({chunk:new Blob([text])})),{ready:!0}]}}function startWorker({code,messages}){let address=URL.
createObjectURL(code),started=new Worker(address);URL.revokeObjectURL(address);let fail=message=>{started.
terminate(),worker=null;for(let{reject}of pending.values())reject(new Error(message));pending.clear()};
started.onerror=e=>fail(e.message||t("error.engine")),started.onmessage=({data})=>{data.failed&&fail(
data.failed);let request2=pending.get(data.id);pending.delete(data.id),data.error?request2?.reject(new Error(
data.error)):request2?.resolve(data.result)};for(let message of messages)started.postMessage(message);
return started}async function computeInWorker(path,body,signal){if(!modelParts)throw new Error(t("er\
ror.damaged"));worker??=startWorker(modelParts);let running=worker;requestCount+=1;let id=requestCount;
return new Promise((resolve,reject)=>{pending.set(id,{resolve,reject}),signal?.addEventListener("abo\
rt",()=>{pending.delete(id)&&(running.postMessage({cancel:id}),reject(new Error(t("error.replaced"))))}),
running.postMessage({id,path,body})})}hasWorker&&(modelParts&&(worker=startWorker(modelParts)),window.
manyheads={translate:(text,{beam}={})=>computeInWorker("line",{q:String(text),beam})});var dataElement=document.getElementById("manyheads-data"),embedded=dataElement&&JSON.parse(dataElement.
textContent??""),isPartMissing=embedded?embedded.about.char_limit&&!hasWorker:hasWorker||location.protocol===
"file:";if(isPartMissing)throw new Error("a part of this page is missing");var canCompute=!embedded||
hasWorker,cachedAnswers=new Map,inProgress=new Map,MAX_CACHED=24;function request(path,body){let name=`${mh.
key} ${path} ${JSON.stringify(body)}`,cached=cachedAnswers.get(name);if(cached)return cached;let answer=sendRequest(
path,body);return answer.catch(()=>cachedAnswers.delete(name)),cachedAnswers.set(name,answer),cachedAnswers.
size>MAX_CACHED&&cachedAnswers.delete(cachedAnswers.keys().next().value??""),answer}async function sendRequest(path,body){
let kind=body?JSON.stringify([path,body.model,body.changes,body.write]):"",control=new AbortController;
kind&&(inProgress.get(kind)?.abort(),inProgress.set(kind,control));try{return await(hasWorker?computeInWorker:
fetchAnswer)(path,body,control.signal)}catch(error){throw control.signal.aborted?new Error(t("error.\
replaced")):error}finally{inProgress.get(kind)===control&&inProgress.delete(kind)}}async function fetchResponse(path,body,signal){
let isForm=body instanceof FormData,response=await fetch(path,{method:body?"POST":"GET",headers:{...mh.
key&&{Authorization:`Bearer ${mh.key}`},...body&&!isForm&&{"Content-Type":"application/json"}},body:isForm?
body:body&&JSON.stringify(body),signal}).catch(()=>{throw new Error(t("error.unreachable"))});if(response.
ok)return response;let{error}=await response.json().catch(()=>({}));throw new Error(error||t("error.\
status",{status:response.status}))}var fetchAnswer=async(path,body,signal)=>(await fetchResponse(path,
body,signal)).json(),embeddedOr=(name,path)=>embedded?embedded[name]:request(path),loadAbout=()=>embeddedOr(
"about","api/models"),loadStrings=language=>embedded?embedded.strings[language]:request(`page/${language}\
.json`),loadModel=name=>embeddedOr("model",`api/model?model=${encodeURIComponent(name)}`),loadCurves=name=>embeddedOr(
"curves",`api/curves?model=${encodeURIComponent(name)}`),currentModel=()=>mh.about.models.find(({name})=>name===
state.model)||mh.about.models[0];function textFor(name,q=state.q){let other=mh.about.models.find(model=>model.
name===name);return currentModel().examples.includes(q)?other?.examples[0]??"":q}var disabledHeads=()=>state.
off.split("_").filter(Boolean),modelChanges=()=>state.off||!state.mask||!state.positions?{heads:disabledHeads(),
mask:state.mask>0,positions:state.positions>0}:void 0,translateText=(q,changes)=>request("api/transl\
ate",{model:currentModel().name,q,changes,...state.beam&&{beam:Number(state.beam)}}),sentenceOf=({sentences})=>sentences[state.
sentence]||sentences[0]||{source:"",translation:"",hypotheses:[]};async function requestBody(){let{name:model,
task}=currentModel(),changes=modelChanges(),prefix=state.prefix?state.prefix.split(".").map(Number):
void 0;if(!state.q.trim()&&!prefix)return null;if(task==="language-modeling")return{model,changes,q:prefix?
"":state.q,prefix,max_tokens:state.more};if(task==="classification")return{model,changes,q:state.q};
let q=sentenceOf(await translateText(state.q)).source;return{model,changes,q,prefix,padding:state.padding,
...state.beam&&{beam:Number(state.beam)},...state.target&&{target:state.target}}}async function fetchInspection(options){
if(!canCompute&&embedded)return embedded.inspection;let body=await requestBody();return body&&request(
"api/inspect",{...body,...options})}var fetchHead=async(kind,layer,head)=>request("api/head",{...await requestBody(),
kind,layer,head});var attentionOfKind=({attention},kind)=>attention.find(part=>part.kind===kind)??attention[attention.
length-1],headOptions=count=>[["mean",t("attention.mean")],...range(count)];function weightsOf({weights},layer,head){
let{shape:[,count,rows,columns],data}=unpack(weights),indices=head==="mean"?range(count):[Number(head)];
return(row,column)=>indices.reduce((sum,index)=>sum+data[((Number(layer)*count+index)*rows+row)*columns+
column],0)/indices.length}var sideName=(side,{language})=>`${t(`column.${side}`)} (${languageName(language)}\
)`;function attentionAxes({text,inputs,source,target},kind){let axis=(tokens,side,role)=>({names:tokens.
map(token=>token.piece),title:`${side}, ${t(`attention.${role}`)}`});if(!source){let tokens=inputs?[
...inputs,...text.tokens.slice(-1)]:text.tokens;return["query","key"].map(role=>axis(tokens,t("class\
ify.text"),role))}let[from,to]=[sideName("source",source),sideName("target",target)];return[kind==="\
encoder"?axis(source.tokens,from,"query"):axis(target.tokens,to,"query_predicted"),kind==="decoder"?
axis(inputs,to,"key_read"):axis(source.tokens,from,"key")]}function shiftNote({source},{kind,mask},[
rows,columns]){let example=min(1,rows.names.length-1),hasCausalMask=!unpack(mask).data[columns.names.
length-1];return source&&kind==="decoder"&&hasCausalMask?t("attention.shift",{piece:pieceText(rows.names[example]),
before:pieceText(columns.names[example])}):""}var GREEDY_TOKENS=16,LEAST_DIFFERENCE=.005;function changedFigure(key,chart){let shown=figure({key,chart});
return shown.classList.toggle("changed-model",!!modelChanges()),shown}function activeChanges(){let active=disabledHeads().
map(name=>{let[kind,layer,head]=name.split("."),others=disabledHeads().filter(other=>other!==name),title=localized(
`attention.${kind}`)??kind,named=t("attention.named",{layer,head});return[`${title}, ${named}`,{off:others.
join("_")}]});return state.mask||active.push([t("change.mask"),{mask:1}]),state.positions||active.push(
[t("change.positions"),{positions:1}]),active}var changeNotice=()=>canCompute&&modelChanges()?changedFigure(
"change.effect",stack(changeEffect())):"";function changeEffect(){if(!modelChanges())return"";let items=activeChanges().
map(([name,undo])=>h("li",{},name,button("\xD7",()=>update(undo),{"aria-label":t("change.undo",{name})})));
return[h("div",{id:"effect","aria-live":"polite"}),!state.mask&&note(t("change.mask_note")),div("chi\
ps-row",h("ul",{class:"chips","aria-label":t("change.what")},items),linkButton(t("change.reset"),()=>update(
AS_TRAINED)))]}async function showEffect(){let holder2=document.getElementById("effect");if(!holder2||
!state.q.trim()){holder2?.replaceChildren();return}let{q}=state;try{let[before,after]=await Promise.
all([void 0,modelChanges()].map(outputUnder)),cells=state.tab==="attention"&&await changedCells();if(state.
q!==q||!holder2.isConnected)return;let words=wordDifferences(after.text,before.text),row=(name,hidden,score)=>[
t(name),h("span",{lang:currentModel().target},markedWords(words.filter(([,change2])=>change2!==hidden))),
n(score)],kinds=words.map(([,change2])=>change2),rows=[row("change.before","new",before.score),row("\
change.after","gone",after.score)];holder2.replaceChildren(para("strong",effectSummary(kinds,before,
after)),div("effect",tableOf([columnTitles("model output score"),rows],t("change.effect"))),cells?note(
cells):"")}catch{holder2.replaceChildren()}}function effectSummary(changes,before,after){let[gone,added]=[
"gone","new"].map(name=>changes.filter(change2=>change2===name).length),[from,to]=[n(before.score),n(
after.score)],score=t(from===to?"change.kept":after.score<before.score?"change.fell":"change.rose",{
score:t(`change.${before.measure}`),from,to});return t(gone+added?"change.words":before.measure==="l\
abel"?"change.same_label":"change.same",{gone,new:added,score})}async function changedCells(){let inspections=await Promise.
all([fetchInspection({changes:void 0}),fetchInspection()]),[before,after]=inspections.map(inspection=>inspection&&
attentionOfKind(inspection,state.kind));if(!before||!after)return"";let pieces=inspections.map(inspection=>(inspection?.
target??inspection?.text)?.tokens.map(token=>token.piece).join(" "));if(state.kind!=="encoder"&&pieces[0]!==
pieces[1])return t("change.other_rows");let[,count,rows,columns]=unpack(after.weights).shape,countIn=(layer,head)=>{
let[first,second]=[before,after].map(attention=>weightsOf(attention,layer,head));return range(rows*columns).
filter(i=>abs(first(floor(i/columns),i%columns)-second(floor(i/columns),i%columns))>=LEAST_DIFFERENCE).
length},heads=range(unpack(after.weights).shape[0]*count),all=heads.reduce((sum,head)=>sum+countIn(floor(
head/count),head%count),0);return t("change.cells",{least:n(LEAST_DIFFERENCE),here:countIn(state.layer,
state.head),cells:rows*columns,all,total:heads.length*rows*columns})}async function outputUnder(changes){
let{name:model,task}=currentModel();if(task==="language-modeling"){let body={model,q:state.q,changes},
greedy=await request("api/next",{...body,top_k:1,write:GREEDY_TOKENS}),{tokens}=await request("api/n\
ext",body);return{text:(body.q+greedy.text).replaceAll(`
`," \u21B5 "),measure:"next",score:tokens[0].probability}}if(task==="classification"){let{label,classes}=await request(
"api/inspect",{model,changes,q:state.q});return{text:label,measure:"label",score:classes.find(candidate=>candidate.
label===label)?.probability??0}}let{translation,hypotheses}=sentenceOf(await translateText(state.q,changes));
return{text:translation,measure:"score",score:hypotheses[0]?.score??0}}var TABS={translate:{tasks:["translation"],needsEngine:!0},classify:{tasks:["classification"]},continue:{
tasks:["language-modeling"]},whole:{needsInspection:!0,showsText:!0},words:{tasks:["translation","la\
nguage-modeling"],needsInspection:!0},alignment:{tasks:["translation"],needsInspection:!0},attention:{
needsInspection:!0,hasSwitches:!0},steps:{needsInspection:!0,needsEngine:!0},beam:{tasks:["translati\
on"],needsInspection:!0},training:{part:"curves"},model:{part:"model"},card:{part:"model"}};function availableViews(){
let{task,watched}=currentModel();return Object.entries(TABS).filter(([,tab])=>tab.tasks?.includes(task)??
!0?canCompute?watched||!(tab.needsInspection||tab.part==="model"):!tab.needsEngine&&mh.about.parts.includes(
tab.part??"inspection"):!1).map(([name])=>name)}var job=null,holder=div("figure file");function fileButton(){let input=h("input",{type:"file",accept:mh.
about.files?.join()??"",hidden:!0,onchange:()=>{translateFile([...input.files??[]]),input.value=""}}),
choose=()=>input.click();return[button(t("file.choose"),choose,{id:"file-choose",title:t("file.drop")}),
input]}function fileState(){return showJob(),holder}function acceptDroppedFiles(){let accept=e=>{let{
types,files}=e.dataTransfer??{};!types?.includes("Files")||!availableViews().includes("translate")||
(e.preventDefault(),!(e.type!=="drop"||!files)&&(translateFile([...files]),state.tab!=="translate"&&
goTo({tab:"translate"})))};for(let type of["dragover","drop"])addEventListener(type,accept)}async function translateFile([
file,...others]){if(!file)return;job?.control.abort();let{source="",target=""}=currentModel(),form=new FormData;
form.append("source",source),form.append("target",target),form.append("file",file);let control=new AbortController;
job={name:file.name,time:span("count"),control};let current=job,start2=performance.now(),timer=setInterval(
()=>{let seconds=integer((performance.now()-start2)/1e3);current.time.textContent=t("file.seconds",{
seconds})},1e3);showJob();try{if(others.length)throw new Error(t("file.one"));let answer=await fetchAnswer(
"translate_file",form,control.signal),{translatedFileUrl,report}=answer,path=`download_file/${translatedFileUrl.
split("/").pop()}`,response=await fetchResponse(path,void 0,control.signal),[,name]=(response.headers.
get("Content-Disposition")??"").split("UTF-8''"),content=await response.blob();current.result={...report,
name:decodeURIComponent(name),content}}catch(error){current.error=error.message}clearInterval(timer),
job===current&&(showJob(),current.result&&announce(holder.firstChild?.textContent??""))}function showJob(){
let isFocused=holder.contains(document.activeElement);if(holder.replaceChildren(),job?.error)holder.
append(h("p",{class:"wrong",role:"alert"},`${job.name}: ${job.error}`));else if(job?.result){let{name,
content,units,unchanged,doubtful,notes}=job.result,counts={units,unchanged,doubtful:doubtful.length},
shown=Object.entries(counts).map(([key,count])=>[key,integer(count)]),rows=doubtful.map(([place,text,
reasons])=>[place,text,reasons.join("; ")]),save=()=>download(name,content.type,content);holder.append(
para("",t("file.done",{name,...Object.fromEntries(shown)})),div("controls",button(t("file.save",{name}),
save,{class:"primary"})),...notes.map(text=>note(text)),rows.length?tableOf([columnTitles("place tex\
t doubt"),rows],t("file.doubtful")):"")}else if(job){let busy=t("file.busy",{name:job.name}),cancel=button(
t("correct.cancel"),()=>{job?.control.abort(),job=null,showJob()}),progress=h("progress",{"aria-labe\
l":busy});holder.append(para("",busy),div("controls",progress,job.time,cancel))}isFocused&&(holder.querySelector(
"button")??byId("file-choose")).focus()}var TYPING_DELAY=450;function textBox(title,run){let{source,examples}=currentModel(),count=h("p",{class:"\
count",id:"count"}),later=debounce(TYPING_DELAY,submit),box=h("textarea",{id:"source",rows:3,dir:"au\
to",lang:source,spellcheck:"false",placeholder:t("translate.placeholder"),"aria-describedby":"count",
oninput:()=>{updateCount(),later()},onkeydown:e=>{e.key==="Enter"&&(e.ctrlKey||e.metaKey)&&(e.preventDefault(),
submit())}});box.value=state.q,updateCount();function updateCount(){let left=mh.about.char_limit-[...box.
value].length;count.textContent=t("translate.left",{left:integer(left)}),count.classList.toggle("wro\
ng",left<0)}function submit(){box.value!==state.q&&change({...OWN_OUTPUT,q:box.value,sentence:0}),run()}
return div("card side",h("label",{class:"side-head",for:"source"},title),box,div("side-foot",count,examples.
length>0&&linkButton(t("translate.example"),()=>{box.value=examples[(examples.indexOf(box.value)+1)%
examples.length],updateCount(),submit()})))}function textSummary({kind,source,target,text,label,score}){
let line=(side,style,more)=>h("p",{dir:"auto",lang:side.language,class:style},side.text,more&&h("sma\
ll",{},more)),texts=kind==="translation"?[line(source,"about-source"),line(target,"about-target",`${t(
"column.score")} ${n(score)}`)]:line(text,"about-target",label),reset=button(t("about.reset"),()=>update(
OWN_OUTPUT));return div("about",texts,canCompute&&(state.prefix||state.target)&&div("changed",t(state.
prefix?"about.prefix":"about.target"),reset))}function occlusionFigure({words,columns},texts,{output,label}){let rows=words.map(omitted=>[texts[omitted.
word],omitted.drop,`${n(omitted.drop,2)}${label&&omitted.output!==label?` \u2192 ${omitted.output}`:
""}`]),outputs=words.map(omitted=>[texts[omitted.word],output&&markDifferences(omitted.output,output)]);
return figure({key:"occlusion.words",about:label&&t("classify.occlusion_note",{label}),chart:stack(bars(
rows),output&&tableOf([[t("occlusion.without"),t("occlusion.output")],outputs],t("occlusion.output"))),
table:()=>[[t("occlusion.without"),t("occlusion.drop"),...columns.map(pieceText)],words.map(omitted=>[
texts[omitted.word],omitted.drop,...omitted.drops])]})}var WORD_ROW=34,LEAST_WEIGHT=1e-6;function buildAlignment(panel2,inspection){let{alignment,source,target}=inspection;
if(!alignment){panel2.append(note(t("alignment.none")));return}let cross=attentionOfKind(inspection,
"cross"),[layers,count]=unpack(cross.weights).shape,selected={layer:alignment.layer,head:"mean"},[shown,
words]=[!0,!1].map(apart=>[source,target].map(text=>unitsOf(text,apart))),holder2=div("");panel2.append(
div("controls",choice(t("attention.layer"),range(layers),selected.layer,value=>{selected.layer=Number(
value),draw()}),choice(t("attention.head"),headOptions(count),"mean",value=>{selected.head=value,draw()}),
slider(t("alignment.threshold"),{min:0,max:.9,step:.05,value:state.threshold,show:value=>value?`\u2265 ${n(
value,2)}`:t("alignment.best")},threshold=>{change({threshold}),draw()})),holder2,inspection.occlusion?
occlusionFigure(inspection.occlusion,source.words,{output:target.text}):""),draw();function draw(){let value=weightsOf(
cross,selected.layer,selected.head),weights=unitWeights(value,shown),pairs=linksOf(weights),pharaoh=linksOf(
unitWeights(value,words)).sort((a,b)=>a[0]-b[0]||a[1]-b[1]).map(pair=>pair.join("-")).join(" "),weight=(to,from)=>weights[to][from];
holder2.replaceChildren(figure({key:"alignment.links",chart:div("",wordLinks(inspection,shown.map(({
texts})=>texts),pairs,weight),para("pharaoh","Pharaoh ",h("code",{},pharaoh||"\u2013"))),table:()=>[
columnTitles("target source weight"),pairs.map(([from,to])=>[shown[1].texts[to],shown[0].texts[from],
weight(to,from)])]}))}function unitWeights(value,[from,to]){let tokensOf=(unitOf,unit)=>range(unitOf.
length).filter(i=>unitOf[i]===unit),sum=values=>values.reduce((a,b)=>a+b,0);return to.texts.map((_,row)=>from.
texts.map((__,column)=>{let rows=tokensOf(to.unitOf,row);return sum(rows.flatMap(i=>tokensOf(from.unitOf,
column).map(k=>value(i,k))))/max(1,rows.length)}))}function linksOf(weights){let{threshold}=state;return weights.
flatMap((row,to)=>{let limit=threshold||max(...row)-LEAST_WEIGHT,columns=range(row.length).filter(from=>row[from]>=
limit);return(threshold?columns:columns.slice(0,1)).map(from=>[from,to])})}}function unitsOf({words,
tokens},apart){let units={texts:[],unitOf:tokens.map(()=>null)};return words.forEach((word,index)=>{
let own=range(tokens.length).filter(i=>tokens[i].word===index),signs=own.map(i=>tokens[i].piece.replace(
"\u2581","")).map(piece=>apart&&new RegExp("^\\p{P}+$","u").test(piece)?piece:""),[first,last]=[signs.
findIndex(sign=>!sign),signs.findLastIndex(sign=>!sign)],[before,after]=[signs.slice(0,max(0,first)),
signs.slice(last+1)],isSplit=first>=0&&word.startsWith(before.join(""))&&word.endsWith(after.join("")),
inner=word.slice(before.join("").length,word.length-after.join("").length),texts=isSplit?[...before,
inner,...after]:[word];own.forEach((i,k)=>{units.unitOf[i]=units.texts.length+(isSplit?k<=first?k:max(
first,first+k-last):0)}),units.texts.push(...texts)}),units}function wordLinks(inspection,texts,pairs,weight){
let names=["source","target"],paths=pairs.map(([from,to])=>svg("path",{class:"link","stroke-width":1+
4*min(1,weight(to,from))})),lines=svg("svg",{class:"links",height:max(...texts.map(words=>words.length))*
WORD_ROW},paths),pairsOf=(side,i)=>pairs.filter(pair=>pair[side]===i),sides=texts.map((words,side)=>words.
map((word,i)=>{let[on,off]=[()=>highlight(side,i),()=>highlight()],partners=pairsOf(side,i).map(pair=>texts[1-
side][pair[1-side]]);return h("button",{type:"button",class:"word",dir:"auto","aria-label":`${word}:\
 ${partners.join(", ")||"\u2013"}`,onfocus:on,onblur:off,onpointerenter:on,onpointerleave:off},word)}));
function highlight(side,i){let highlighted=side===void 0||i===void 0?[]:pairsOf(side,i);pairs.forEach(
(pair,k)=>{paths[k].setAttribute("class",`link ${highlighted.includes(pair)?"lit":side===void 0?"":"\
dim"}`)}),sides.forEach((words,index)=>words.forEach((word,k)=>word.classList.toggle("lit",highlighted.
some(pair=>pair[index]===k))))}let wordList=side=>roving(h("div",{class:`words ${names[side]}`,role:"\
group",lang:inspection[names[side]].language,"aria-label":t(`column.${names[side]}`)},sides[side]),sides[side]),
middle=onResize(div("",lines),width=>{lines.setAttribute("width",String(width)),pairs.forEach((pair,k)=>{
let[from,to]=pair.map(word=>(word+.5)*WORD_ROW);paths[k].setAttribute("d",`M0 ${from}C${width/2} ${from}\
 ${width/2} ${to} ${width} ${to}`)})}),titles=names.map(name=>para(`axis ${name}`,sideName(name,inspection[name])));
return div("alignment",titles,wordList(0),middle,wordList(1))}var[EXAMPLES,SEARCH_TIME]=[3,3e3],foundChanges={text:"",found:[]};function changeSwitches(kind,layer,head,count,masked){
let names=(head==="mean"?range(count):[head]).map(index=>`${kind}.${layer}.${index}`),otherHeads=disabledHeads().
filter(name=>!names.includes(name)),isOff=names.every(name=>disabledHeads().includes(name)),switches=div(
"controls",checkbox(t(head==="mean"?"change.layer":"change.head",{layer,head}),isOff,on=>update({off:[
...otherHeads,...on?names:[]].join("_")})),masked&&checkbox(t("change.mask"),!state.mask,on=>update(
{mask:on?0:1})),checkbox(t("change.positions"),!state.positions,on=>update({positions:on?0:1}))),examples=div(
"");return hasWorker?showExamples(examples):examples.append(linkButton(t("change.find"),()=>showExamples(
examples))),changedFigure("change.switches",stack(switches,examples,changeEffect()))}function possibleChanges({
attention}){let layers=attention.flatMap(({kind,weights})=>{let[count,heads]=weights.shape;return range(
count).map(layer=>{let names=range(heads).map(head=>`${kind}.${layer}.${head}`);return{name:t("chang\
e.kind",{kind:t(`attention.${kind}`).toLowerCase(),layer}),shown:{kind,layer,head:"mean",off:names.join(
"_")},changes:{heads:names,mask:!0,positions:!0}}})}),mask={name:t("change.mask"),shown:{mask:0},changes:{
heads:[],mask:!1,positions:!0}},positions={name:t("change.positions"),shown:{positions:0},changes:{heads:[],
mask:!0,positions:!1}};return[...layers.reverse(),positions,...attention.some(({kind})=>kind==="deco\
der")?[mask]:[]]}async function showExamples(holder2){let{q}=state,end=performance.now()+SEARCH_TIME;
try{let[before,inspection]=await Promise.all([outputUnder(),fetchInspection({changes:void 0})]),line=inspection?.
source?.text??q,text=[mh.language,currentModel().name,state.beam,line].join(" "),isKnown=foundChanges.
text===text,found=isKnown?foundChanges.found:[];for(let change2 of inspection&&!isKnown?possibleChanges(
inspection):[]){if(performance.now()>end||state.q!==q||!holder2.isConnected)break;let after=await outputUnder(
change2.changes),words=wordDifferences(after.text,before.text).filter(([,kind])=>kind).length;found.
push({...change2,words,gap:abs(after.score-before.score),effect:words?t("change.example_words",{words}):
`${n(before.score,2)} \u2192 ${n(after.score,2)}`})}found.sort((a,b)=>b.words-a.words||b.gap-a.gap),
state.q===q&&holder2.isConnected&&(foundChanges={text,found});let buttons=found.slice(0,EXAMPLES).map(
({name,shown,effect})=>button([name," ",h("small",{},effect)],()=>update({...AS_TRAINED,...shown}),{
"data-focus":name}));found.length&&holder2.replaceChildren(note(t("change.examples")),div("examples",
buttons))}catch{holder2.replaceChildren()}}var CIVIDIS="00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",DIVERGING="7a300\
0 d55e00 f1a35e f9f9f9 78b4de 0072b2 00325c";function colourRamp(scale){let colours=scale.split(" ").
map(colour=>[0,2,4].map(i=>parseInt(colour.slice(i,i+2),16)));return range(256).map(i=>{let position=i/
255*(colours.length-1),lower=min(colours.length-2,floor(position));return colours[lower].map((channel,k)=>round(
channel+(colours[lower+1][k]-channel)*(position-lower)))})}var RAMPS=[colourRamp(CIVIDIS),colourRamp(
DIVERGING)],shareColour=(share,low)=>RAMPS[+(low<0)][round(255*clamp(share,1))],textColourOn=([red,green,
blue])=>.2126*red**2+.7152*green**2+.0722*blue**2>13500?"#000":"#fff",legend=(low,high,text)=>span("\
legend",span("",text),span("scale",n(low,2),span(low<0?"ramp signed":"ramp"),n(high,2)));function paint(canvas,share,low=0){
let context=canvas.getContext("2d"),image=context.createImageData(canvas.width,canvas.height);range(
canvas.width*canvas.height).forEach(i=>{let amount=share(floor(i/canvas.width),i%canvas.width);amount!==
null&&image.data.set([...shareColour(amount,low),255],4*i)}),context.putImageData(image,0,0)}function colourStrip(values,high){
let canvas=h("canvas",{class:"strip",width:values.length,height:1,"aria-hidden":!0});return paint(canvas,
(_,i)=>(values[i]+high)/(2*high),-high),canvas}var MAX_TABLE_CELLS=4096,[MIN_CELL,MAX_CELL]=[16,96],ABOVE_CELLS=440,cellText=value=>value>=.995?"1.\
0":value<.005?"0":value.toFixed(2).slice(1);function matrix({rows,before,columns,value,hidden=()=>!1,
low=0,high=1,label,meaning,rowTitle,columnTitle,digits=4,large=rows.length*columns.length>MAX_TABLE_CELLS}){
let reading=para("reading"," "),share=(row,column)=>(value(row,column)-low)/(high-low||1),describe=(row,column)=>{
let from=`${rowTitle} ${pieceText(rows[row])}`,to=`${columnTitle} ${pieceText(columns[column])}`,shown=hidden(
row,column)?t("masked"):n(value(row,column),digits);return`${from} \u2192 ${to}: ${shown}`},{grid,moveCursor,
cellAt}=(large?canvasGrid:tableGrid)({rows,before,columns,value,hidden,share,describe,label,low,high,
rowTitle,columnTitle}),[cursor,pinned]=[[0,0],!1];function select(row,column,focus){moveCursor(cursor,
[row,column],focus),cursor=[row,column],reading.textContent=describe(row,column)+(pinned?` (${t("pin\
ned")})`:"")}grid.addEventListener("keydown",e=>{let[row,column]=cursor,[last,end]=[rows.length-1,columns.
length-1],toCorner=e.ctrlKey||e.metaKey;(e.key==="Enter"||e.key===" ")&&(pinned=!pinned);let to={ArrowUp:[
row-1,column],ArrowDown:[row+1,column],ArrowLeft:[row,column-1],ArrowRight:[row,column+1],Home:[toCorner?
0:row,0],End:[toCorner?last:row,end],Enter:cursor," ":cursor}[e.key];to&&(e.preventDefault(),select(
clamp(to[0],last),clamp(to[1],end),!0))});let follow=e=>{let cell=cellAt(e);!pinned&&cell&&select(...cell)};
return grid.addEventListener("focusin",follow),grid.addEventListener("pointermove",follow),grid.addEventListener(
"click",e=>{let cell=cellAt(e);cell&&(pinned=!pinned,select(...cell,!0))}),select(0,0),div("",large?
grid:div("matrix-box",grid),reading,legend(low,high,meaning))}function tableGrid({rows,before,columns,
value,hidden,share,label,low,high,rowTitle,columnTitle}){let headerCell=scope=>name=>h("th",{scope,dir:"\
auto"},span("",pieceText(name))),addPrevious=(side,row)=>side.prepend(before?h("small",{"aria-hidden":!0},
`${pieceText(before[row])} \u2192 `):""),[tops,sides]=[columns.map(headerCell("col")),rows.map(headerCell(
"row"))];sides.forEach(addPrevious);let text=amount=>high>1?n(amount,2):(amount>-.005?"":"\u2212")+cellText(
abs(amount)),cell=(row,column)=>{let colour=shareColour(share(row,column),low),number=text(value(row,
column)),isMasked=hidden(row,column),style={backgroundColor:`rgb(${colour})`,color:textColourOn(colour)},
look=isMasked?{class:"masked"}:{class:number==="0"&&"nil",style},place={tabindex:-1,"data-at":`${row}\
 ${column}`};return h("td",{...look,...place},span("",isMasked?t("masked"):number))},cells=rows.map(
(_,row)=>columns.map((__,column)=>cell(row,column))),grid=h("table",{class:"matrix",role:"grid","ari\
a-label":label},h("caption",{},columnTitle),h("thead",{},h("tr",{},h("td",{class:"corner"},rowTitle),
tops)),h("tbody",{},cells.map((row,i)=>h("tr",{},sides[i],row))));requestAnimationFrame(()=>onResize(
grid.parentNode,width=>{let names=before?min(190,width*.4):min(150,width*.3),size=max(MIN_CELL,min(MAX_CELL,
floor((width-names)/columns.length))),share2=max(MIN_CELL*1.5,floor((innerHeight-ABOVE_CELLS)/rows.length)),
height=max(MIN_CELL,min(size,MAX_CELL/2,share2));grid.style.setProperty("--cell",`${size}px`),grid.style.
setProperty("--cell-height",`${height}px`),grid.classList.toggle("bare",size<30)}));let mark=([row,column],on)=>{
for(let element of[tops[column],sides[row],cells[row][column]])element.classList.toggle("current",on);
cells[row][column].tabIndex=on?0:-1};return{grid,cellAt:e=>{let place=e.target.closest("td[data-at]")?.
getAttribute("data-at")?.split(" ").map(Number);return place?[place[0],place[1]]:null},moveCursor:(from,to,focus)=>{
mark(from,!1),mark(to,!0),tops.forEach((top,column)=>top.classList.toggle("unread",hidden(to[0],column))),
focus&&cells[to[0]][to[1]].focus()}}}function canvasGrid({rows,columns,hidden,share,describe,label,low}){
let canvas=h("canvas",{width:columns.length,height:rows.length});paint(canvas,(row,column)=>hidden(row,
column)?null:share(row,column),low);let cell=h("div",{role:"gridcell",tabindex:0,class:"picked"}),line=h(
"div",{role:"row"},cell);return{grid:h("div",{class:rows.length===columns.length?"picture square":"p\
icture",role:"grid","aria-label":label,"aria-rowcount":rows.length,"aria-colcount":columns.length},line,
canvas),cellAt:e=>{if(!(e instanceof MouseEvent))return null;let{left,top,width,height}=canvas.getBoundingClientRect(),
indexAt=(fraction,count)=>clamp(floor(fraction*count),count-1);return[indexAt((e.clientY-top)/height,
rows.length),indexAt((e.clientX-left)/width,columns.length)]},moveCursor:(_,[row,column])=>{let percent=(index,count)=>`${100*
index/count}%`;Object.assign(cell.style,{left:percent(column,columns.length),top:percent(row,rows.length),
width:percent(1,columns.length),height:percent(1,rows.length)}),aria(line,"rowindex",row+1),aria(cell,
"colindex",column+1),aria(cell,"label",describe(row,column))}}}var matrixTable=({rows,columns,value,
hidden=()=>!1,rowTitle})=>[[rowTitle,...columns.map(pieceText)],rows.map((name,row)=>[pieceText(name),
...columns.map((_,column)=>hidden(row,column)?t("masked"):value(row,column))])];var PADDING=3,MAX_COLUMNS_BESIDE=16,axisLabels=(names,side)=>h("span",{class:`names ${side}`,"aria-h\
idden":!0},names.map((name,i)=>span("",i%ceil(names.length/12)?"":pieceText(name))));function buildAttention(panel2,inspection){
let kinds=inspection.attention.map(part=>part.kind),attention=attentionOfKind(inspection,state.kind),
{kind}=attention,[layers,count,height,width]=unpack(attention.weights).shape,[mask,entropy]=[unpack(
attention.mask).data,unpack(attention.entropy).data],[rows,columns]=attentionAxes(inspection,kind),named=(layer,head)=>t(
head==="mean"?"attention.named_mean":"attention.named",{layer,head}),all=range(layers).flatMap(layer=>[
"mean",...range(count)].map(head=>[`${layer}.${head}`,named(layer,head)])),exists=name=>all.some(([value])=>value===
name),current=exists(`${state.layer}.${state.head}`)?`${state.layer}.${state.head}`:`${layers-1}.mea\
n`,other=exists(state.other)?state.other:"",[large,switches]=[div("side-by-side"),div("")],both=div(
"with-switches",large,switches),layerList=choice(t("attention.layer"),range(layers),"",layer=>showHead(
`${layer}.${current.split(".")[1]}`)),headList=choice(t("attention.head"),headOptions(count),"",head=>showHead(
`${current.split(".")[0]}.${head}`));panel2.append(div("controls",kinds.length>1&&choice(t("attentio\
n.kind"),kinds.map(name=>[name,t(`attention.${name}`)]),kind,value=>update({kind:value,other:""})),layerList,
headList,choice(t("attention.compare"),[["",t("attention.nothing")],...all],other,value=>{other=value,
showHead(current)}),canCompute&&!hasWorker&&inspection.kind==="translation"&&checkbox(t("attention.p\
adding",{count:PADDING}),state.padding>0,on=>update({padding:on?PADDING:0})),canCompute&&!hasWorker&&
button(t("steps.open"),()=>goTo({tab:"steps"}))),both,thumbnails()),showHead(current);function showHead(name){
current=name;let[layer,head]=name.split(".");change({kind,layer:Number(layer),head,other}),setChoice(
layerList,layer),setChoice(headList,head);for(let button2 of panel2.querySelectorAll(".thumbnail"))aria(
button2,"pressed",button2.getAttribute("data-head")===name);large.replaceChildren(...(other?[[name],
[other],[name,other]]:[[name]]).map(largeFigure)),large.classList.toggle("two",!!other),both.classList.
toggle("beside",canCompute&&!other&&width<=MAX_COLUMNS_BESIDE),canCompute&&(switches.replaceChildren(
changeSwitches(kind,layer,head,count,kinds.includes("decoder"))),showEffect())}function largeFigure(names){
let heads=names.map(name=>name.split(".")),[first,second]=heads.map(([layer,head])=>weightsOf(attention,
layer,head)),differs=heads.length>1,value=differs?(row,column)=>first(row,column)-second(row,column):
first,high=differs?max(.01,...range(height*width).map(i=>abs(value(floor(i/width),i%width)))):1,shift=shiftNote(
inspection,attention,[rows,columns]),title=heads.map(([layer,head])=>named(layer,head)).join(" \u2212 "),
options={rows:rows.names,before:shift?columns.names:void 0,columns:columns.names,value,high,low:differs?
-high:0,hidden:(row,column)=>!mask[row*width+column],label:`${t(`attention.${kind}`)}, ${title}`,rowTitle:rows.
title,columnTitle:columns.title,meaning:t(differs?"attention.difference":"attention.weight")};return figure(
{key:`attention.${kind}`,title:options.label,about:t(differs?"attention.difference_note":"attention.\
note"),table:()=>matrixTable(options),chart:div("",note(shift),matrix(options),note(span("swatch mas\
ked"),t(`mask.${kind}`)))})}function thumbnail(layer,head){let canvas=h("canvas",{width,height});paint(
canvas,weightsOf(attention,layer,head));let name=`${layer}.${head}`,off=disabledHeads().includes(`${kind}\
.${name}`)?`, ${t("change.off")}`:"",style=`thumbnail${off&&" off"}`;return h("button",{type:"button",
class:style,"data-head":name,onclick:()=>showHead(name)},span("hidden",`${t("attention.layer_n",{layer})}\
, `),span("",t("attention.head_n",{head}),off),axisLabels(layer?[]:columns.names,"above"),canvas,span(
"hidden",`, ${t("column.entropy")} `),span("",n(entropy[layer*count+head],2)))}function thumbnails(){
let buttons=range(layers*count).map(i=>thumbnail(floor(i/count),i%count)),lines=range(layers).map(layer=>div(
"heads-row",span("heads-name",t("attention.layer_n",{layer})),axisLabels(rows.names,"beside"),buttons.
slice(layer*count,(layer+1)*count)));return figure({key:"attention.all",chart:stack(note(t("attentio\
n.axes",{rows:rows.title,columns:columns.title})),roving(h("div",{class:"heads",role:"group","aria-l\
abel":t("attention.all")},lines),buttons),legend(0,1,t("attention.weight"))),table:()=>[[t("attentio\
n.layer"),...range(count).map(head=>`${t("attention.head")} ${head}`)],range(layers).map(layer=>[layer,
...entropy.slice(layer*count,(layer+1)*count)])]})}}var[NODE,NODE_ROW,NODE_HEIGHT,NODE_GAP]=[104,54,46,36],STEP_TIME=900;function buildBeam(panel2,{beam}){
if(!beam){panel2.append(note(t("beam.none")));return}let{nodes}=beam,stop=t(`stop.${beam.stop}`),reason=node=>t(
`state.${node.state}`,{total:n(node.total,2),threshold:n(node.threshold,2),score:n(node.score,2),beam:beam.
beam_size,stop}),styleOf=node=>(["pruned","outranked","late-end"].includes(node.state)?" discarded":
"")+(node.best?" best":""),columns=[];for(let node of nodes)(columns[node.step]||=[]).push(node);let last=columns.
length-1,position=node=>[node.step*(NODE+NODE_GAP),columns[node.step].indexOf(node)*NODE_ROW],edges=nodes.
map(node=>{if(node.parent===null)return svg("path");let[[x,y],[left,top]]=[position(nodes[node.parent]),
position(node)],[from,start2,to]=[y+NODE_HEIGHT/2,x+NODE,top+NODE_HEIGHT/2],half=NODE_GAP/2;return svg(
"path",{d:`M${start2} ${from}C${start2+half} ${from} ${left-half} ${to} ${left} ${to}`})}),boxes=nodes.
map((node,i)=>{let[left,top]=position(node),select=()=>selectNode(i);return h("button",{type:"button",
tabindex:-1,class:`node ${node.state}${styleOf(node)}`,style:{left:`${left}px`,top:`${top}px`},"aria\
-label":`${pieceText(node.piece)} ${n(node.total,2)}, ${reason(node)}`,onfocus:select,onpointerenter:select},
h("span",{dir:"auto"},pieceText(node.piece))," ",h("small",{},n(node.total,2)))}),size={width:columns.
length*(NODE+NODE_GAP)-NODE_GAP,height:max(...columns.map(column=>column.length))*NODE_ROW},scroll=h(
"div",{class:"tree-scroll",onkeydown:moveFocus},h("div",{class:"tree",role:"group","aria-label":t("b\
eam.tree"),style:{width:`${size.width}px`,height:`${size.height}px`}},svg("svg",size,edges),boxes)),
detail=para("reading"," "),step=min(last,state.step),current=0,keys=h("ul",{class:"keys"},["kept","p\
runed","finished","best"].map(name=>h("li",{},span(`node sample ${name}`),t(`beam.${name}`))));panel2.
append(figure({key:"beam.tree",values:{beam:beam.beam_size,penalty:compact(beam.length_penalty),stop},
chart:div("",stepper({label:t("column.step"),last,value:step,time:STEP_TIME},showSteps).field,scroll,
detail,keys,h("details",{},h("summary",{},t("beam.list")),list())),table:()=>[columnTitles("step pie\
ce log_probability total score rank before reason"),nodes.map(node=>[node.step+1,node.piece,node.log_probability,
node.total,node.score,node.rank,node.parent===null?"\u2013":nodes[node.parent].piece,reason(node)])]})),
showSteps(step),selectNode(nodes.findLast(node=>node.best&&node.step<=step)?.number??0);function showSteps(value){
step=value,change({step}),nodes.forEach((node,i)=>{boxes[i].hidden=node.step>step}),scroll.scrollLeft=
(step+1)*(NODE+NODE_GAP)-scroll.clientWidth,selectNode(nodes[current].step>step?columns[step][0].number:
current)}function selectNode(i){boxes[current].tabIndex=-1,current=i,boxes[i].tabIndex=0;let path=[];
for(let node2=nodes[i];node2;node2=nodes[node2.parent??-1])path.unshift(node2);nodes.forEach((node2,k)=>{
let onPath=path.includes(node2);boxes[k].classList.toggle("on-path",onPath),edges[k].setAttribute("c\
lass",`edge${styleOf(node2)}`),edges[k].classList.toggle("on-path",onPath),edges[k].classList.toggle(
"hidden-edge",node2.step>step)});let node=nodes[i],values=["log_probability","total","score"].map(name=>`${t(
`column.${name}`)} ${n(node[name],2)}`);detail.textContent=[path.map(ancestor=>pieceText(ancestor.piece)).
join(" "),...values,`${t("column.rank")} ${node.rank}`,reason(node)].join(" \xB7 ")}function moveFocus(e){
let node=nodes[current],column=columns[node.step],index=column.indexOf(node),children=nodes.filter(child=>child.
parent===current),targets={ArrowRight:children.find(child=>child.best)||children[0],ArrowLeft:nodes[node.
parent??-1],ArrowDown:column[index+1],ArrowUp:column[index-1],Home:column[0],End:column.at(-1)};if(!(e.
key in targets))return;e.preventDefault();let to=targets[e.key];to&&to.step<=step&&boxes[to.number].
focus()}function list(){let childList=parent=>{let children=nodes.filter(child=>child.parent===parent);
return children.length>0&&h("ul",{},children.map(child=>h("li",{},span(child.best&&"strong",`${pieceText(
child.piece)} ${n(child.total,2)} `),h("small",{},reason(child)),childList(child.number))))};return h(
"div",{class:"scroll list",tabindex:0,role:"region","aria-label":t("beam.list")},childList(null)||"")}}async function buildCard(panel2){let{model,card}=await loadModel(currentModel().name),{licence}=card,
blocks=mh.language==="ko"?card.korean:card.blocks,{weights}=mh.about,pairs=[["licence",licence||t("c\
ard.no_licence")],["parameters",integer(model.parameters)]];weights&&pairs.push(["precision",weights.
precision],["bytes",`${n(weights.bytes/2**20,1)} MiB`]),panel2.append(facts(pairs.map(([name,value])=>[
t(`card.${name}`),value])),blocks.length?h("article",{class:"card model-card"},cardBlocks(blocks)):note(
t("card.none")))}function cardBlocks(blocks){let elements=[];for(let[tag,text]of blocks)tag==="li"?(elements.
at(-1)?.tagName!=="UL"&&elements.push(h("ul")),elements[elements.length-1].append(h("li",{},text))):
/^h[1-6]$/.test(tag)?elements.push(h(tag==="h1"?"h2":"h3",{},text)):elements.push(para("",text));return elements}var documentText=inspection=>inspection&&!canCompute?textSummary(inspection):"";async function resultsUnderText(panel2,show){
let holder2=stack(),runCount=0,run=async()=>{let number=runCount+=1;showEffect();let elements=await show().
catch(error=>[h("p",{class:"wrong",role:"alert"},error.message)]);number===runCount&&holder2.replaceChildren(
...elements)},box=canCompute&&textBox(t("classify.text"),run),intro=panel2.querySelector(".intro");return box&&
intro?intro.after(box):box&&panel2.prepend(box),panel2.append(holder2),await run(),run}async function buildClassify(panel2){await resultsUnderText(panel2,async()=>{let inspection=await fetchInspection();
if(!inspection)return[];let classes=[...inspection.classes].sort((a,b)=>b.probability-a.probability),
{label,pooling,occlusion,text}=inspection;return[documentText(inspection),figure({key:"classify.labe\
l",values:{label},about:t(`classify.${pooling}`),chart:bars(classes.map(item=>[item.label,item.probability,
n(item.probability),"",item.label===label]),1),table:()=>[columnTitles("class probability"),classes.
map(item=>[item.label,item.probability])]}),occlusion?occlusionFigure(occlusion,text.words,{label}):
""]})}async function buildContinue(panel2){let generated=h("p",{class:"translation",dir:"auto","aria-live":"\
polite"}),requestNext=options=>request("api/next",{model:currentModel().name,q:state.q,temperature:state.
temperature,top_k:state.topk,top_p:state.topp,changes:modelChanges(),...options}),later=debounce(200,
()=>run()),stateSlider=(name,options)=>slider(t(`continue.${name}`),{value:state[name],...options},value=>{
change({[name]:value}),later()});canCompute&&panel2.append(div("controls",stateSlider("temperature",
{min:.1,max:3,step:.1,show:value=>n(value,1)}),stateSlider("topk",{min:0,max:50,show:value=>value?String(
value):t("continue.all")}),stateSlider("topp",{min:.05,max:1,step:.05,show:value=>n(value,2)}),button(
t("continue.write"),()=>requestNext({write:24,seed:floor(Math.random()*1e6)}).then(({text})=>generated.
replaceChildren(state.q,h("mark",{},text)),({message})=>generated.replaceChildren(message)),{class:"\
primary"}))),panel2.append(generated);let run=await resultsUnderText(panel2,async()=>{let result=canCompute?
await requestNext():null,inspection=canCompute?null:await fetchInspection(),tokens=result?.tokens??inspection?.
next.map(token=>({...token,share:token.probability}))??[],append=token=>canCompute&&token.text&&linkButton(
t("continue.append"),()=>update({...OWN_OUTPUT,q:state.q+token.text}),`${t("continue.append")}: ${pieceText(
token.piece)}`);return[documentText(inspection),figure({key:"continue.next",about:result&&t("continu\
e.note",{kept:integer(result.kept)}),chart:bars(tokens.map(token=>[pieceText(token.piece),token.share,
canCompute?`${n(token.share)} (${n(token.probability)})`:n(token.share),append(token)]),1),table:()=>[
columnTitles("piece share probability"),tokens.map(token=>[token.piece,token.share,token.probability])]})]})}var DASHES=["","7 4","2 3","10 3 2 3","5 5","14 3","1 4"],MARKERS="\u25CF\u25A0\u25B2\u25C6\u2715\u271A\u25CB",
LOGARITHMIC_CHARTS=["training.loss","training.perplexity"],curvesFigure=(key,series,xTitle,yTitle,values)=>figure(
{key,values,chart:curves({label:t(key,values),series,xTitle,yTitle,logarithmic:LOGARITHMIC_CHARTS.includes(
key)}),table:()=>curvesTable(series,xTitle)});function ticks(low,high,count){let power=10**floor(Math.
log10((high-low)/count)),step=[1,2,5].map(factor=>factor*power).find(size=>size>=(high-low)/count)??
10*power,first=ceil(low/step-1e-9),text=value=>step<.001||step>=1e3?compact(value):n(value,max(0,-floor(
Math.log10(step)+1e-9)));return range(max(1,floor(high/step+1e-9)-first+1)).map(k=>[(first+k)*step,text(
(first+k)*step)])}var textWidth=text=>[...text].reduce((width,letter)=>width+(letter>"\u1100"?12:6.4),
0),nearest=(sorted,value)=>sorted.reduce((best,item,i)=>abs(item-value)<=abs(sorted[best]-value)?i:best,
0),allX=series=>[...new Set(series.flatMap(curve=>curve.x))].sort((a,b)=>a-b);function logarithmicTicks(low,high,count){
let[first,last]=[low,high].map(value=>floor(Math.log10(value))),numbers=range(last-first+1).flatMap(
power=>(last-first>3?[1]:[1,2,5]).map(factor=>factor*10**(first+power))).filter(value=>value>=low&&value<=
high);if(numbers.length<=2)return ticks(low,high,count);let text=value=>value<.001||value>=1e4?compact(
value):n(value,max(0,-floor(Math.log10(value)+1e-9)));return numbers.map(value=>[value,text(value)])}
function nameHeights(paths,left,top,bottom){let pieces=paths.flatMap(path=>path.flatMap(([x,y],i)=>{
let[startX,startY]=path[i-1]??[x,y];return x<left?[]:[[y,startX<left?startY+(y-startY)*(left-startX)/
(x-startX):startY]]})),taken=[],ends=paths.map(path=>path[path.length-1][1]);for(let end of ends){let free=range(
ceil((bottom-top)/4)).map(k=>top+4*k).filter(y=>pieces.every(piece=>y<min(...piece)-11||y>max(...piece)+
11)&&taken.every(other=>abs(other-y)>15));if(!free.length)return null;taken.push(free.reduce((best,y)=>abs(
y-end)<abs(best-end)?y:best))}taken.sort((a,b)=>a-b);let order=range(ends.length).sort((i,k)=>ends[i]-
ends[k]);return ends.map((_,i)=>taken[order.indexOf(i)])}function curves({label,series,xTitle,yTitle,
logarithmic=!1}){let xs=allX(series),ys=series.flatMap(curve=>curve.y).filter(y=>!logarithmic||y>0),
[low,high]=ys.length?[min(...ys),max(...ys)]:[1,1];!logarithmic&&low>0&&low<high*.4&&(low=0),low===high&&
([low,high]=logarithmic?[low/2,high*2]:[min(0,low),max(1,high*1.2)]);let[first,last]=[xs[0],xs.length>
1?xs[xs.length-1]:xs[0]+1],reading=para("reading",h("small",{},t("chart.keys"))),cursor=svg("path",{
class:"cursor"}),holder2=h("div",{class:"chart",tabindex:0,role:"slider","aria-label":label,"aria-va\
luenow":0,"aria-valuemin":0,"aria-valuemax":xs.length-1,"aria-valuetext":t("chart.keys")}),box={left:56,
top:10,right:0,bottom:0},toX=value=>box.left+(value-first)/(last-first)*(box.right-box.left),toY=value=>{
let share=logarithmic?Math.log(max(value,low)/low)/Math.log(high/low):(value-low)/(high-low);return box.
bottom-share*(box.bottom-box.top)},pathOf=({x,y})=>x.map((value,i)=>`${i?"L":"M"}${toX(value).toFixed(
1)} ${toY(y[i]).toFixed(1)}`).join(""),index=-1;function readValues(to){index=clamp(to,xs.length-1);
let values=series.map(({name,x,y})=>{let value=compact(y[nearest(x,xs[index])]);return series.length>
1?`${name} ${value}`:value});reading.textContent=`${xTitle} ${compact(xs[index])}: ${values.join(" \xB7\
 ")}`,aria(holder2,"valuenow",index),aria(holder2,"valuetext",reading.textContent),cursor.setAttribute(
"d",`M${toX(xs[index])} ${box.top}V${box.bottom}`)}holder2.addEventListener("keydown",e=>{let to={ArrowRight:index+
1,ArrowUp:index+1,ArrowLeft:index-1,ArrowDown:index-1,Home:0,End:xs.length-1}[e.key];to!==void 0&&(e.
preventDefault(),readValues(to))}),holder2.addEventListener("pointermove",e=>{let share=(e.clientX-holder2.
getBoundingClientRect().left-box.left)/(box.right-box.left);readValues(nearest(xs,first+share*(last-
first)))});let text=(x,y,content,style="tick")=>svg("text",{class:style,x,y},content),mark=(k,x,y)=>svg(
"text",{class:"mark",x,y:y+4},MARKERS[k%7]),line=(k,d)=>svg("path",{class:"curve",d,"stroke-dasharra\
y":DASHES[k%7]}),names=series.map(curve=>`${curve.name}: ${compact(curve.y[curve.y.length-1])}`),keys=h(
"ul",{class:"keys"},names.map((name,k)=>h("li",{},svg("svg",{width:36,height:14,class:`c${k%7}`},line(
k,"M1 7H35"),mark(k,18,7)),name)));return onResize(holder2,width=>{let height=round(min(300,max(200,
width*.4)));Object.assign(box,{right:width-16,bottom:height-40});let left=box.right-max(...names.map(
textWidth))-26,paths=series.map(({x,y})=>x.map((value,i)=>[toX(value),toY(y[i])])),heights=left>width/
3?nameHeights(paths,left,box.top+6,box.bottom-8):null;keys.hidden=!!heights,holder2.replaceChildren(
svg("svg",{width,height},(logarithmic?logarithmicTicks:ticks)(low,high,5).map(([y,tick])=>[svg("path",
{class:"grid",d:`M${box.left} ${toY(y)}H${box.right}`}),text(box.left-8,toY(y)+4,tick,"tick end")]),
ticks(first,last,max(2,floor(width/80))).filter(([x])=>Number.isInteger(x)).map(([x])=>text(toX(x),box.
bottom+18,compact(x))),text((box.left+box.right)/2,height-4,xTitle),series.map(({x,y},k)=>svg("g",{class:`\
c${k%7}`},line(k,pathOf(series[k])),x.flatMap((value,i)=>i%ceil(x.length/12)?[]:[mark(k,toX(value),toY(
y[i]))]),svg("circle",{class:"ring",r:4,cx:toX(x[x.length-1]),cy:toY(y[y.length-1])}))),heights?.map(
(y,k)=>svg("g",{class:`c${k%7}`},mark(k,box.right-textWidth(names[k])-14,y),text(box.right-4,y+4,names[k],
"tick end name"))),cursor)),index>=0&&readValues(index)}),div("",para("axis",`${yTitle}${logarithmic?
`, ${t("unit.logarithmic")}`:""}`),holder2,reading,keys)}function curvesTable(series,xTitle){let values=series.
map(curve=>new Map(curve.x.map((x,i)=>[x,curve.y[i]])));return[[xTitle,...series.map(curve=>curve.name)],
allX(series).map(x=>[x,...values.map(byX=>byX.get(x))])]}async function buildModel(panel2){let{model,sources}=await loadModel(currentModel().name),inspection=await fetchInspection().
catch(()=>null),{total_steps:total,warmup_steps:warmup,schedule:name,steps:x,rates:y}=model.learning_rate,
settings2=["parameters","d_model","d_ff","num_heads","num_encoder_layers","num_decoder_layers","norm",
"positions"].map(key=>[t(`model.${key}`),{...model.model,parameters:model.parameters}[key]]),blocks=model.
blocks.map(block2=>[block2.name,block2.parameters,`${integer(block2.parameters)} (${n(100*block2.parameters/
model.parameters,1)} %)`]),tensors=()=>[columnTitles("name shape parameters deviation tied"),model.tensors.
map(tensor=>[tensor.name,tensor.shape.join(" \xD7 "),tensor.parameters,tensor.deviation,tensor.tied_to])];
panel2.append(facts(settings2.map(([label,value])=>[label,typeof value=="number"?integer(value):value])),
symbolsFigure(model.symbols,sources),figure({key:"model.blocks",chart:bars(blocks),table:()=>[columnTitles(
"block parameters"),model.blocks.map(block2=>[block2.name,block2.parameters])]}),...positionFigures(
model.positions),curvesFigure("model.schedule",[{name,x,y}],t("column.update"),t("unit.learning_rate"),
{name,total:integer(total),warmup:integer(warmup)}),neighboursFigure(inspection),figure({key:"model.\
tensors",values:{count:model.tensors.length},chart:tableOf(tensors(),t("model.tensors")),table:tensors}))}
function symbolsFigure(symbols,sources){let meaning=symbol=>localized(`symbol.${symbol.symbol}`)||symbol.
meaning,items=symbols.map(symbol=>{let code=sources[symbol.source],lines=code.text.split(`
`).map((line,i)=>[h("span",{class:"line-number","aria-hidden":!0},String(code.line+i)),`${line}
`]);return h("details",{class:"symbol",open:state.symbol===symbol.symbol,ontoggle:e=>change({symbol:e.
target.open?symbol.symbol:""})},h("summary",{},span("letter",symbol.symbol),span("",meaning(symbol)),
h("small",{},symbol.shape)),para("equation",symbol.equation),note(t("model.where",{section:symbol.section,
source:`src/manyheads/${symbol.source}`})),h("pre",{class:"scroll code",tabindex:0,role:"region","ar\
ia-label":symbol.source},lines))});return figure({key:"model.symbols",chart:div("",items),table:()=>[
columnTitles("symbol meaning equation section source_line shape"),symbols.map(symbol=>[symbol.symbol,
meaning(symbol),symbol.equation,symbol.section,symbol.source,symbol.shape])]})}function positionFigures({
kind,signal,products}){let{shape:[count,width],data}=unpack(signal),[position,dimension]=[t("column.\
position"),t("column.dimension")],heatMap=(packed,rows,columns,columnTitle,key,about)=>{let values=unpack(
packed).data,high=values.reduce((largest,value)=>max(largest,abs(value)),.01),options={rows:range(rows).
map(String),columns:range(columns).map(String),value:(row,column)=>values[row*columns+column],low:-high,
high,label:t(key,{kind}),meaning:t("attention.axes",{rows:position,columns:columnTitle}),rowTitle:position,
columnTitle,digits:3,large:!0};return figure({key,values:{kind},about:t(`positions.${about}`),chart:matrix(
options),table:()=>matrixTable(options)})},series=[...new Set([0,1,2,3].map(quarter=>floor(width*quarter/
4)))].map(index=>({name:`${dimension} ${index}`,x:range(count),y:range(count).map(row=>data[row*width+
index])}));return[heatMap(signal,count,width,dimension,"positions.encoding",kind),curvesFigure("posi\
tions.single",series,position,t("column.value")),heatMap(products,count,count,position,"positions.pr\
oducts",kind==="rotary"?"cosines":"dots")]}function neighboursFigure(inspection){let all=["neighbour\
s","source_neighbours","target_neighbours"].flatMap(name=>inspection?.[name]||[]),table=()=>[columnTitles(
"piece near"),all.map(token=>[pieceText(token.piece),token.near.map(neighbour=>`${pieceText(neighbour.
piece)} ${n(neighbour.cosine,2)}`).join("  ")])];return all.length?figure({key:"model.near",chart:tableOf(
table(),t("model.near")),table}):""}var m=(tag,...children)=>populate(document.createElementNS("http://www.w3.org/1998/Math/MathML",tag),
{},children),elementFor=text=>/^−?[\d.,]+$/.test(text)?"mn":/^[a-z]+$/i.test(text)?"mi":"mo",mrow=(...terms)=>m(
"mrow",terms.flat(9).map(term=>typeof term=="string"?m(elementFor(term),term):term)),msub=(name,index)=>m(
"msub",mrow(name),mrow(index)),mfrac=(upper,lower)=>m("mfrac",mrow(upper),mrow(lower)),mroot=content=>m(
"msqrt",mrow(content)),mexp=power=>m("msup",mrow("e"),mrow(power)),msum=index=>m("munder",mrow("\u2211"),
mrow(index)),mnumber=value=>value<0?["(",n(value,2),")"]:n(value,2);function mproducts(pairs){let count=innerWidth<
700?1:3;return[pairs.slice(0,count).map(([a,b],i)=>[i?"+":[],mnumber(a),"\xB7",mnumber(b)]),pairs.length>
count?["+","\u2026"]:[]]}var formulaBox=(...terms)=>h("div",{class:"formula",tabindex:0,role:"group",
"aria-label":t("steps.formula")},populate(m("math",mrow(terms)),{display:"block"},[]));async function headSteps(inspection,kind,layer,head){let[rows,columns]=attentionAxes(inspection,kind),
packed=await fetchHead(kind,layer,head),arrays=Object.fromEntries(["queries","keys","values","scores",
"mask","weights","outputs"].map(name=>[name,unpack(packed[name])])),at=(name,i,k)=>arrays[name].data[i*
arrays[name].shape[1]+k],vector=(name,i)=>[...arrays[name].data.slice(i*width,(i+1)*width)],width=arrays.
queries.shape[1];return{rows,columns,at,vector,width}}var vectorText=(name,values)=>`${name}: ${values.
map(value=>n(value,2)).join("  ")}`,largestOf=vectors=>max(...vectors.flat().map(abs),.01),weightCell=value=>div(
"share",span("bar",h("span",{style:{width:`${100*value}%`}})),n(value)),MINUS_INFINITY="\u2212\u221E",
STEPS={scores({rows,columns,at,vector,width},query){let q=vector("queries",query),keys=columns.names.
map((_,i)=>vector("keys",i)),high=largestOf([q,...keys]),score=i=>at("scores",query,i),dot=i=>score(
i)*Math.sqrt(width),name=`q ${pieceText(rows.names[query])}`;return{high,titles:[t("steps.keys"),"q \
\xB7 k",t("column.score")],formula:[msub("s","j"),"=",mfrac(["q","\xB7",msub("k","j")],mroot(msub("d",
"k")))],numbers:i=>[mfrac(mproducts(q.map((value,e)=>[value,keys[i][e]])),mroot(String(width))),"=",
mfrac(n(dot(i),2),n(Math.sqrt(width),2)),"=",n(score(i),2)],cells:i=>[colourStrip(keys[i],high),n(dot(
i),2),n(score(i),2)],firstRow:[name,[colourStrip(q,high),"",""]],vectorOf:i=>vectorText(`k ${pieceText(
columns.names[i])}`,keys[i]),table:()=>[[t("column.piece"),"q \xB7 k",t("column.score"),...range(width)],
[[name,"","",...q],...keys.map((components,i)=>[`k ${pieceText(columns.names[i])}`,dot(i),score(i),...components])]]}},
mask({columns,at},query){let score=i=>at("scores",query,i),visible=i=>at("mask",query,i)>.5,cells=i=>[
n(score(i),2),visible(i)?"0":MINUS_INFINITY,visible(i)?n(score(i),2):MINUS_INFINITY],titles=[t("colu\
mn.score"),t("steps.mask_short"),t("steps.masked")];return{titles,formula:[msub("s","j"),"+",msub("m",
"j")],numbers:i=>[n(score(i),2),"+",visible(i)?"0":["(",MINUS_INFINITY,")"],"=",visible(i)?n(score(i),
2):MINUS_INFINITY],cells:i=>cells(i).map((cell,k)=>span(k>0&&!visible(i)&&"hatched",cell)),table:()=>[
[t("column.piece"),...titles],columns.names.map((piece,i)=>[pieceText(piece),score(i),visible(i)?0:MINUS_INFINITY,
visible(i)?score(i):MINUS_INFINITY])]}},softmax({columns,at},query){let all=range(columns.names.length),
visible=i=>at("mask",query,i)>.5,largest=max(...all.filter(visible).map(i=>at("scores",query,i))),power=i=>visible(
i)?Math.exp(at("scores",query,i)-largest):0,total=all.reduce((sum,i)=>sum+power(i),0),score=i=>visible(
i)?n(at("scores",query,i),2):MINUS_INFINITY,titles=[t("steps.masked"),t("steps.power"),t("column.wei\
ght")];return{titles,formula:[msub("a","j"),"=",mfrac(mexp(msub("s","j")),[msum("i"),mexp(msub("s","\
i"))]),"=",mfrac(mexp([msub("s","j"),"\u2212","max"]),[msum("i"),mexp([msub("s","i"),"\u2212","max"])])],
numbers:i=>[mfrac(mexp([score(i),"\u2212",mnumber(largest)]),n(total)),"=",mfrac(n(power(i)),n(total)),
"=",n(at("weights",query,i))],cells:i=>[score(i),n(power(i)),weightCell(at("weights",query,i))],lastRow:[
t("steps.sum"),["",n(total),n(1)]],table:()=>[[t("column.piece"),...titles],all.map(i=>[pieceText(columns.
names[i]),visible(i)?at("scores",query,i):MINUS_INFINITY,power(i),at("weights",query,i)])]}},output({
rows,columns,at,vector,width},query){let values=columns.names.map((_,i)=>vector("values",i)),output=vector(
"outputs",query),high=largestOf([...values,output]),weight=i=>at("weights",query,i),order=i=>[i,...range(
values.length).filter(k=>k!==i).sort((a,b)=>weight(b)-weight(a))],name=t("steps.result",{piece:pieceText(
rows.names[query])});return{high,titles:[t("column.weight"),t("steps.values")],formula:["o","=",msum(
"j"),msub("a","j"),msub("v","j")],numbers:i=>[msub("o","0"),"=",mproducts(order(i).map(k=>[weight(k),
values[k][0]])),"=",n(output[0],2)],cells:i=>[weightCell(weight(i)),colourStrip(values[i],high)],lastRow:[
name,["",colourStrip(output,high)]],vectorOf:i=>vectorText(`v ${pieceText(columns.names[i])}`,values[i]),
table:()=>[[t("column.piece"),t("column.weight"),...range(width)],[...values.map((components,i)=>[`v\
 ${pieceText(columns.names[i])}`,weight(i),...components]),[name,"",...output]]]}}};var STAGES=["scores","mask","softmax","output"];async function buildSteps(panel2,inspection){let kinds=inspection.
attention.map(part=>part.kind),attention=attentionOfKind(inspection,state.kind),{kind}=attention,[layers,
count]=unpack(attention.weights).shape,layer=range(layers).includes(state.layer)?state.layer:layers-
1,head=range(count).includes(Number(state.head))?Number(state.head):0,steps=await headSteps(inspection,
kind,layer,head),{rows,columns}=steps,shift=shiftNote(inspection,attention,[rows,columns]),[query,key]=[
0,0],stateChoice=(name,options,current)=>choice(t(`attention.${name}`),options,current,value=>{change(
{kind,layer,head:String(head),[name]:name==="layer"?Number(value):value,...name==="kind"&&{query:0}}),
mh.render(!0)}),tokens=rows.names.map((name,i)=>button(pieceText(name),()=>selectQuery(i),{class:"to\
ken",dir:"auto"})),stages=STAGES.map((name,i)=>button(`${i+1}. ${t(`steps.${name}_short`)}`,()=>showStage(
i))),back=button(t("steps.back"),()=>showStage(state.stage-1)),next=button(t("steps.next"),()=>showStage(
state.stage+1),{class:"primary"}),holder2=h("div",{});holder2.addEventListener("keydown",changeStage,
!0),panel2.append(div("controls",kinds.length>1&&stateChoice("kind",kinds.map(name=>[name,t(`attenti\
on.${name}`)]),kind),stateChoice("layer",range(layers),layer),stateChoice("head",range(count),head)),
figure({key:"steps.query",about:`${t("steps.query_note",{side:rows.title})} ${shift}`,chart:tokenRow(
rows.title,tokens,rows.names,min(state.query,tokens.length-1))}),div("controls stages",roving(h("div",
{class:"segments",role:"group","aria-label":t("tab.steps")},stages),stages,state.stage,showStage),back,
next),holder2),selectQuery(min(state.query,tokens.length-1));function selectQuery(i){query=i,key=columns.
names.reduce((best,_,k)=>steps.at("weights",i,k)>steps.at("weights",i,best)?k:best,0),change({query}),
setPressed(tokens,i),showStage(state.stage)}function showStage(to){change({stage:clamp(to,STAGES.length-
1)}),setPressed(stages,state.stage),stages.forEach((stage,i)=>{stage.tabIndex=i===state.stage?0:-1}),
back.disabled=state.stage===0,next.disabled=state.stage===STAGES.length-1,holder2.replaceChildren(draw(
STAGES[state.stage]))}function changeStage(e){let by={ArrowRight:1,ArrowLeft:-1}[e.key];!by||!(e.target instanceof
Element&&e.target.closest(".strips"))||e.altKey||e.ctrlKey||e.metaKey||(e.preventDefault(),e.stopPropagation(),
showStage(state.stage+by),holder2.querySelectorAll(".strips button")[key].focus())}function draw(name){
let{formula,numbers,titles,cells,firstRow,lastRow,vectorOf,table,high}=STEPS[name](steps,query),[filledIn,
reading]=[div("formula-numbers"),para("reading vector")],buttons=columns.names.map((piece,i)=>button(
pieceText(piece),()=>selectKey(i),{dir:"auto",onfocus:()=>selectKey(i)})),line=(style,title,content)=>h(
"tr",{class:style},h("th",{scope:"row",dir:"auto"},title),content.map(cell=>h("td",{},cell))),lines=buttons.
map((keyButton,i)=>line("",keyButton,cells(i)));lines.forEach((row,i)=>row.addEventListener("pointer\
enter",()=>selectKey(i)));let strips=h("table",{class:"strips"},h("thead",{},h("tr",{},[columns.title,
...titles].map(title=>h("th",{scope:"col"},title)))),h("tbody",{},firstRow&&line("summary",...firstRow),
lines,lastRow&&line("summary",...lastRow)));return selectKey(key),figure({key:`steps.${name}`,title:`${state.
stage+1}. ${t(`steps.${name}`)}`,table,chart:stack(div("formulas",formulaBox(formula),filledIn),stack(
h("div",{class:"scroll-x"},roving(strips,buttons,key)),reading,high&&legend(-high,high,t("steps.comp\
onent"))),name==="scores"&&inspection.model.positions==="rotary"&&kind!=="cross"&&note(t("steps.rota\
ry")),name==="output"&&disabledHeads().includes(`${kind}.${layer}.${head}`)&&note(t("steps.off")))});
function selectKey(i){key=i,lines.forEach((row,k)=>row.classList.toggle("current",k===i)),filledIn.replaceChildren(
formulaBox(numbers(i))),reading.textContent=vectorOf?vectorOf(i):""}}}var TRAINING_CHARTS={loss:["train_loss","valid_loss"],perplexity:["perplexity"],scores:["bleu","chrf",
"accuracy","macro_f1"],learning_rate:["learning_rate"],gradient_norm:["gradient_norm"],speed:["token\
s_per_second"]},MAX_POINTS=300;async function buildTraining(panel2){let names=mh.about.models.map(({
name})=>name),chosen=new Set([currentModel().name]),holder2=stack();canCompute&&names.length>1&&panel2.
append(h("fieldset",{class:"controls"},h("legend",{},t("training.runs")),names.map(name=>checkbox(name,
chosen.has(name),on=>{chosen[on?"add":"delete"](name),draw()})))),panel2.append(holder2),await draw();
async function draw(){let runs=(await Promise.all(names.filter(name=>chosen.has(name)).map(loadCurves))).
flatMap(({runs:runs2})=>runs2),several=runs.length>1,charts=div("charts");holder2.replaceChildren(runs.
length?charts:note(t("training.none")));for(let[name,seriesNames]of Object.entries(TRAINING_CHARTS)){
let series=runs.flatMap(run=>run.series.filter(item=>seriesNames.includes(item.name)).map(item=>subsample(
item,`${several?`${run.name} `:""}${t(`series.${item.name}`)}`)));series.length&&charts.append(curvesFigure(
`training.${name}`,series,t("column.update"),t(`unit.${name}`)))}for(let run of runs)holder2.append(
...entropyFigures(run),run.samples.length?samplesFigure(run,several):"")}}function subsample({steps,
values},name){let keep=(_,i)=>i%ceil(steps.length/MAX_POINTS)===0||i===steps.length-1;return{name,x:steps.
filter(keep),y:values.filter(keep)}}function entropyFigures(run){let entropies=run.series.map(series=>({
series,parts:series.name.split("/")})).filter(({parts})=>parts[0]==="attention_entropy");return[...new Set(
entropies.map(({parts})=>parts[1]))].map(kind=>{let ofKind=entropies.filter(({parts})=>parts[1]===kind),
values=ofKind.map(({series})=>series.values),options={rows:ofKind.map(({parts:[,,layer,head]})=>t("a\
ttention.named",{layer,head})),columns:ofKind[0].series.steps.map(integer),value:(row,column)=>values[row][column],
hidden:(row,column)=>column>=values[row].length,high:max(...values.flat()),label:`${t("training.entr\
opy")}: ${t(`attention.${kind}`)}`,meaning:t("words.entropy"),rowTitle:t("attention.head"),columnTitle:t(
"column.update")};return figure({key:"training.entropy",title:options.label,chart:matrix(options),table:()=>matrixTable(
options)})})}function samplesFigure(run,several){let steps=[...new Set(run.samples.map(sample=>sample.
step))],initial=state.checkpoint<0?steps.length-1:min(steps.length-1,state.checkpoint),holder2=div(""),
draw=i=>holder2.replaceChildren(...run.samples.filter(sample=>sample.step===steps[i]).map(sample=>facts(
[[t("column.source"),sample.source],[t("column.reference"),sample.reference],[t("column.output"),markDifferences(
sample.output,sample.reference)]],"sample")));return draw(initial),figure({key:"training.samples",title:`${t(
"training.samples")}${several?` (${run.name})`:""}`,table:()=>[columnTitles("update source reference\
 output"),run.samples.map(sample=>[sample.step,sample.source,sample.reference,sample.output])],chart:stack(
slider(t("column.update"),{min:0,max:steps.length-1,value:initial,show:i=>integer(steps[i])},i=>{change(
{checkpoint:i}),draw(i)}),holder2)})}function confidenceOf(sentences){let lowest=["low","medium","high"].find(level=>sentences.some(({confidence_level:own})=>own===
level));return lowest?t(`confidence.${lowest}`):""}function correctionForm(text){let{source,target}=currentModel(),box=h("textarea",{id:"correction",rows:3,
dir:"auto",lang:target}),status=h("p",{class:"count",role:"status"}),send=button(t("correct.send"),submit,
{class:"primary"}),form=h("div",{hidden:!0,role:"group","aria-label":t("correct.open")},h("label",{for:"\
correction"},t("correct.label")),box,div("controls",send,button(t("correct.cancel"),close))),opener=button(
t("correct.open"),()=>{(form.hidden?open:close)()},{class:"quiet","aria-expanded":"false"}),[q,output]=[
"",""];return form.addEventListener("keydown",e=>{e.key==="Escape"&&close()}),div("correct",div("sid\
e-foot",opener,status),form);function open(){if([q,output]=[state.q,text()],!output){status.textContent=
t("correct.empty");return}box.value=output,status.textContent="",show(!0),box.focus()}function close(){
show(!1),opener.focus()}function show(visible){form.hidden=!visible,aria(opener,"expanded",visible)}
async function submit(){let s=box.value.trim();if(!s||s===output){status.textContent=t("correct.same");
return}send.disabled=!0;try{await fetchAnswer("suggest",{q,s,source,target},new AbortController().signal),
close(),status.textContent=t("correct.thanks")}catch(error){status.textContent=error.message}send.disabled=
!1}}var LOW_PROBABILITY=.5;function tokenFigure(tokens,onChoose,current,table){let buttons=tokens.map(({
piece,probability,forced},i)=>h("button",{type:"button",class:`token${probability<LOW_PROBABILITY?" \
doubtful":""}${forced?" given":""}`,"aria-pressed":i===current||"false",onclick:()=>onChoose(i)},h("\
span",{class:"token-text",dir:"auto"},pieceText(piece)),span("token-bar",h("span",{style:{width:`${100*
probability}%`}}))," ",span("token-number",n(probability,2)),forced&&span("hidden",` ${t("words.give\
n")}`)));return figure({key:"words.tokens",table,chart:tokenRow(t("words.tokens"),buttons,tokens.map(
({piece})=>piece),current)})}var BEAMS=[1,2,3,4,5,8,12,16];async function buildTranslate(panel2){let model=currentModel(),output=h(
"div",{class:"output",dir:"auto",lang:model.target,"aria-live":"polite"}),speed=para("count"),notices=h(
"div",{class:"notices","aria-live":"polite"}),below=stack(),[runCount,text]=[0,""],reverse=mh.about.
models.find(other=>other.source===model.target&&other.target===model.source),swap=button("\u21C4",()=>goTo(
{...OWN_OUTPUT,...AS_TRAINED,model:reverse?.name,q:text,sentence:0}),{class:"round","aria-label":t("\
translate.swap"),title:t(reverse?"translate.swap":"translate.no_swap"),disabled:!reverse}),languages=languageLists(),
copy=copyButton(t("copy"),()=>text),correction=mh.about.suggestions&&correctionForm(()=>text),hasFiles=mh.
about.files?.length;panel2.append(div("pair",textBox(languageName(model.source),run),swap,div("card \
side",div("side-head",languageName(model.target)),output,notices,div("side-foot",speed,copy),correction)),
div("controls",languages,choice(t("translate.beam"),[["",t("translate.beam_default",{beam:model.beam})],
...BEAMS],state.beam,beam=>{change({...OWN_OUTPUT,beam}),run()}),button(t("translate.go"),run,{class:"\
primary"}),availableViews().includes("whole")&&button(t("translate.whole"),()=>goTo({tab:"whole",part:0})),
hasFiles&&fileButton(),span("hint",t("translate.keys"))),hasFiles?fileState():"",below),await run();
async function run(){let number=runCount+=1;below.replaceChildren(),showEffect();let slow=setTimeout(
()=>{number===runCount&&(speed.textContent=t("translate.busy"),aria(output,"busy","true"))},TYPING_DELAY),
shown;try{let result=state.q.trim()?await translateText(state.q,modelChanges()):{translation:"",sentences:[],
tokens:0,seconds:0};if(number!==runCount)return;text=result.translation,notices.replaceChildren(...warningsOf(
result.sentences).map(name=>para("notice",t(`warning.${name}`)))),shown=para("translation",text);let shownFacts=[
t("translate.facts",{seconds:n(result.seconds,2),speed:integer(result.tokens/result.seconds)}),confidenceOf(
result.sentences)].filter(Boolean);speed.textContent=text&&shownFacts.join(", "),result.sentences.length&&
(below.append(sentencesFigure(result.sentences,below),div("preview"),sentenceDetails(sentenceOf(result))),
previewAttention(below))}catch(error){shown=para("wrong",error.message),number===runCount&&(speed.textContent=
"")}clearTimeout(slow),number===runCount&&(aria(output,"busy","false"),output.replaceChildren(shown))}}
function languageLists(){let{source,target}=currentModel(),directions=mh.about.models.filter(model=>model.
source),open=model=>{let q=byId("source").value;goTo({...OWN_OUTPUT,...AS_TRAINED,model:model?.name,
q:textFor(model?.name,q),sentence:0})},named=codes=>[...new Set(codes)].map((code="")=>[code,languageName(
code)]);return directions.length<2?[]:[choice(t("translate.from"),named(directions.map(model=>model.
source)),source,chosen=>{let from=directions.filter(model=>model.source===chosen);open(from.find(model=>model.
target===target)||from[0])}),choice(t("translate.to"),named(directions.filter(model=>model.source===
source).map(model=>model.target)),target,chosen=>open(directions.find(model=>model.source===source&&
model.target===chosen)))]}var warningsOf=sentences=>[...new Set(sentences.flatMap(({warnings})=>warnings))];
async function previewAttention(below){if(!currentModel().watched)return;let inspection=await fetchInspection().
catch(()=>null),holder2=below.querySelector(".preview");if(!inspection||!holder2?.isConnected)return;
let cross=attentionOfKind(inspection,"cross"),layer=inspection.alignment?.layer??unpack(cross.weights).
shape[0]-1,[rows,columns]=attentionAxes(inspection,"cross"),title=`${t("attention.cross")}, ${t("att\
ention.named_mean",{layer})}`,options={rows:rows.names,columns:columns.names,value:weightsOf(cross,layer,
"mean"),label:title,meaning:t("attention.weight"),rowTitle:rows.title,columnTitle:columns.title};holder2.
replaceChildren(figure({key:"translate.attention",table:()=>matrixTable(options),chart:div("",matrix(
options),linkButton(t("translate.heads"),()=>goTo({tab:"attention",kind:"cross",layer,head:"mean"})))}))}
function sentencesFigure(sentences,below){if(sentences.length<2)return"";let buttons=sentences.map((sentence,i)=>button(
sentence.source,()=>{change({...OWN_OUTPUT,sentence:i}),setPressed(buttons,i),showEffect(),previewAttention(
below),below.lastChild?.replaceWith(sentenceDetails(sentence))},{class:"sentence",dir:"auto","aria-p\
ressed":i===state.sentence||"false"}));return figure({key:"translate.sentences",chart:div("sentences",
buttons)})}function sentenceDetails({hypotheses}){if(!hypotheses.length)return"";let[best]=hypotheses,
tokens=best.tokens.map((piece,i)=>({piece,probability:Math.exp(best.token_scores[i])})),inspect=target=>()=>goTo(
{...OWN_OUTPUT,tab:"words",target}),rows=hypotheses.map((hypothesis,rank)=>[rank+1,rank?markDifferences(
hypothesis.text,best.text):hypothesis.text,hypothesis.score,hypothesis.log_probability,hypothesis.tokens.
length,linkButton(t("translate.inside"),inspect(rank?hypothesis.text:""),`${t("translate.inside")}: ${hypothesis.
text}`)]);return stack(tokenFigure(tokens,at=>goTo({...OWN_OUTPUT,tab:"words",at})),figure({key:"tra\
nslate.alternatives",chart:tableOf([columnTitles("rank text score log_probability length look"),rows],
t("translate.alternatives"))}))}var ATTENTION_CELLS=[["qkv",24,0],["scores",24,0],["softmax",32,2],["output",20,3]];function shortened(text,fromEnd){
let longest=innerWidth<700?16:32;return isolate(text.length<=longest?text:fromEnd?`\u2026 ${text.slice(
2-longest)}`:`${text.slice(0,longest-2)} \u2026`)}var piecesText=(tokens,separator=" ")=>tokens.map(
({piece})=>pieceText(piece)).join(separator);function strongestWeight(inspection,kind,keys,only){let attention=attentionOfKind(
inspection,kind),[layers,heads,rows]=unpack(attention.weights).shape,layer=layers-1,places=range(heads).
flatMap(head=>(only===void 0?range(rows):[only]).flatMap(row=>keys.map((_,column)=>({layer,head,row,
column,weight:weightsOf(attention,layer,head)(row,column)})))),isTelling=({row,column})=>keys[column].
word!==null&&(kind==="cross"||row!==column&&(only!==void 0||keys[row]?.word!==null)),telling=places.
filter(isTelling);return(telling.length?telling:places).reduce((best,place)=>place.weight>best.weight?
place:best)}var block=(label,step,value="",more={})=>({label:label&&t(`whole.${label}`),step,value,...more});
function topWeights(tokens,weight,strong){let largest=tokens.map(({piece},i)=>({i,label:pieceText(piece),
value:weight(i)})).sort((a,b)=>b.value-a.value).slice(0,4);return bars(largest.map(({i,label,value})=>[
label,value,n(value,2),"",i===strong]),1)}var ModelBlocks=class{available=availableViews();steps=[];constructor(inspection){
this.inspection=inspection,this.first=["translate","classify","continue"].find(name=>this.available.
includes(name))}step(name,door,values={},chart=()=>""){let hasView=this.available.includes(door.tab??
"");return this.steps.push({name,door:hasView?door:{part:this.steps.length},note:t(`whole.${name}_no\
te`,values),chart})-1}async detailedStack(kind,tokens,text,layers){let{inspection}=this,{d_model,d_ff,
norm,positions}=inspection.model,isDecoder=kind==="decoder",only=isDecoder?tokens.length-1:void 0,strongest=strongestWeight(
inspection,kind,tokens,only),near=(inspection.source_neighbours??inspection.neighbours??[]).find(({id})=>id===
tokens[strongest.row].id),piece=pieceText(tokens[strongest.row].piece),values=this.strongestValues(strongest,
tokens),reading=this.step("text",{tab:this.first}),cutting=this.step("pieces",{tab:"model"},{count:tokens.
length}),embedding=this.step("embedding",{tab:"model",symbol:"E(w)"},values,()=>near&&note(t("whole.\
near",{piece,near:piecesText(near.near.slice(0,3),"  ")}))),placing=this.step("positions",{tab:"mode\
l",symbol:"PE"},{},()=>note(t(`whole.${positions}`))),cells=await this.headCells(kind,tokens,strongest),
adding=this.step(norm==="pre"?"pre_norm":"add_norm",{tab:"model",symbol:"residual, norm"}),sizes={width:d_model,
inner:d_ff,layers},mapping=this.step("ffn",{tab:"model",symbol:"FFN"},sizes);return[block("",reading,
shortened(text)),block("",cutting,shortened(piecesText(tokens),isDecoder),{tokens:!0}),block("embedd\
ing",embedding,`${tokens.length} \xD7 ${d_model}`),block("positions",placing),...this.layers(layers,
[[isDecoder?"masked":"self",cells[0],cells]],adding,mapping)]}strongestValues({layer,head,row,column,
weight},tokens){let{d_model,num_heads}=this.inspection.model;return{piece:pieceText(tokens[row].piece),
to:pieceText(tokens[column].piece),layer,head,heads:num_heads,width:d_model,weight:n(weight,2),root:d_model/
num_heads}}async headCells(kind,tokens,strongest){let{layer,head,row,column}=strongest,piece=pieceText(
tokens[row].piece),values=this.strongestValues(strongest,tokens),weights=weightsOf(attentionOfKind(this.
inspection,kind),layer,head),computed=canCompute?await headSteps(this.inspection,kind,layer,head):null,
tab=this.available.includes("steps")?"steps":"attention",cell=(name,stage,chart)=>this.step(name,{tab,
kind,layer,head:String(head),query:row,stage},values,chart),strips=names=>computed&&facts(names.map(
([name,letter])=>{let vector=computed.vector(name,row);return[`${letter} ${piece}`,colourStrip(vector,
largestOf([vector]))]}),"strip-facts"),scoreBar=(token,i)=>{let score=computed?.at("scores",row,i)??
0;return[pieceText(token.piece),score,n(score,2),"",i===column]};return[cell("qkv",0,()=>strips([["q\
ueries","q"],["keys","k"],["values","v"]])),cell("scores",0,()=>computed&&bars(tokens.map(scoreBar))),
cell("softmax",2,()=>topWeights(tokens,i=>weights(row,i),column)),cell("output",3,()=>strips([["outp\
uts","o"]]))]}layers(layers,sublayers,adding,mapping){let{d_model,d_ff,num_heads,norm}=this.inspection.
model,isPre=norm==="pre",isSeveral=sublayers.length>1,all=[...sublayers.map(([label,step,cells=ATTENTION_CELLS.
map(()=>step)])=>block(label,step,`${num_heads} \xD7`,{cells,readsEncoder:label==="cross"})),block("\
ffn",mapping,`${d_model} \u2192 ${d_ff} \u2192 ${d_model}`)],blocks=all.flatMap((sublayer,i)=>{let label=isPre&&
i===all.length-1?"add":"add_norm";return[sublayer,block(label,isSeveral?sublayer.step:adding,"",{thin:!0})]});
return isPre&&blocks.unshift(block("norm",isSeveral?sublayers[0][1]:adding,"",{thin:!0})),blocks[0].
layers=layers,blocks[blocks.length-1].endsLayers=!0,isPre?[...blocks,block("norm",mapping,"",{thin:!0})]:
blocks}prediction(alternatives,door,chosen,last){let{d_model}=this.inspection.model,shown=alternatives.
map(({piece,probability})=>({label:pieceText(piece),probability})),linear=this.step("linear",door,{width:d_model}),
softmax=this.step("probabilities",door,{},()=>probabilityBars(shown)),next=this.step(this.inspection.
kind==="translation"?"next":"append",last,{piece:chosen,probability:n(alternatives[0].probability,2)}),
best=shown.map(({label,probability})=>({label:isolate(label),probability}));return[block("linear",linear,
`${d_model} \u2192 V`),block("softmax",softmax,bestTwo(best)),block("",next,`\u2192 ${isolate(chosen)}`,
{tokens:!0})]}},probabilityBars=items=>bars(items.map(({label,probability},i)=>[label,probability,n(
probability),"",!i]),1),bestTwo=items=>items.slice(0,2).map(({label,probability})=>`${label} ${n(probability,
2)}`).join("  ");var[BLOCK_HEIGHT,THIN_HEIGHT,ATTENTION_HEIGHT,BLOCK_GAP,FRAME_TOP,FRAME_BOTTOM]=[23,18,48,7,15,5];function modelPicture(steps,columns){
let links=[],blocks=[],heightOf=({cells,thin})=>cells?ATTENTION_HEIGHT:thin?THIN_HEIGHT:BLOCK_HEIGHT,
frameOf=({layers,endsLayers})=>layers?FRAME_BOTTOM:endsLayers?FRAME_TOP:0,heights=columns.map(column=>column.
reduce((sum,block2)=>sum+heightOf(block2)+frameOf(block2)+BLOCK_GAP,0)),height=max(...heights)+BLOCK_GAP,
width=columns.length>1?46:100,[memory,crossing]=[0,0],link=(block2,children,label)=>{let element2=svg(
"a",{class:"block",href:addressOf(steps[block2.step].door),"aria-label":label},children);return links.
push(element2),blocks.push(block2),element2},wire=(x1,y1,x2,y2,arrow)=>svg("line",{class:"wire",x1:`${x1}\
%`,y1,x2:`${x2}%`,y2,"marker-end":arrow&&"url(#arrow)"}),text=(x,y,content,style)=>svg("text",{class:style,
x:`${x}%`,y,"dominant-baseline":"central"},content),drawColumn=(column,index)=>{let[y,below,bottom,layers,
isPre]=[height-BLOCK_GAP,0,0,0,!1],start2=null,wires=[],boxes=[];return column.forEach((block2,i)=>{
let size=heightOf(block2);block2.layers&&(bottom=y+BLOCK_GAP/2,layers=block2.layers,isPre=!!block2.thin,
start2=[53,y-FRAME_BOTTOM+BLOCK_GAP/2+1],y-=FRAME_BOTTOM),y-=size;let middle=y+size/2;i&&wires.push(
wire(53,below,53,y+size+1,!0));let label=block2.label||block2.value,lineAt=block2.cells?y+13:middle;
boxes.push(link(block2,[svg("rect",{x:"8%",y,width:"90%",height:size,rx:5,class:!block2.label&&!block2.
tokens&&"text-box"}),text(block2.label?11:53,lineAt,label,block2.label?"label":"middle"),...block2.label&&
block2.value?[text(96,lineAt,block2.value,"value")]:[]]));let left=10;ATTENTION_CELLS.slice(0,block2.
cells?.length??0).forEach(([name,share],k)=>{let cellWidth=share/100*86;boxes.push(link({...block2,step:block2.
cells?.[k]??0},[svg("rect",{x:`${left}%`,y:y+size-23,width:`${cellWidth-1}%`,height:19,rx:4}),text(left+
(cellWidth-1)/2,y+size-13,t(`whole.${name}`),"middle small")],`${label}: ${t(`whole.${name}`)}`)),left+=
cellWidth}),start2&&block2.thin&&!block2.layers&&(wires.push(wire(start2[0],start2[1],4,start2[1]),wire(
4,start2[1],4,middle),wire(4,middle,8,middle,!0)),start2=isPre?[4,middle]:[53,y-BLOCK_GAP/2]),block2.
readsEncoder&&(crossing=y+size-13),below=y,y-=BLOCK_GAP,block2.endsLayers&&(start2=null,y-=FRAME_TOP,
wires.unshift(svg("rect",{class:"frame",x:"1%",y:y+BLOCK_GAP/2,width:"98.5%",height:bottom-y-BLOCK_GAP/
2,rx:8}),text(97,y+FRAME_TOP-3,`${layers} \xD7`,"value")))}),index||(memory=below),svg("svg",{x:index?
`${100-width}%`:0,y:0,width:`${width}%`,height,"aria-hidden":!1},wires,boxes)},drawn=columns.map(drawColumn),
top=width/2+1.4,between=columns.length>1&&[wire(top,memory,top,memory-8),wire(top,memory-8,50,memory-
8),wire(50,memory-8,50,crossing),wire(50,crossing,57.6,crossing,!0)];return{element:svg("svg",{class:"\
whole-model",width:"100%",height,role:"group","aria-label":t("whole.model"),"aria-hidden":!1},svg("m\
arker",{id:"arrow",viewBox:"0 0 8 8",refX:7,refY:4,markerWidth:7,markerHeight:7,orient:"auto"},svg("\
path",{d:"M0 0L8 4L0 8Z",class:"arrow"})),drawn,between),links,blocks}}async function modelSteps(inspection){let blocks=new ModelBlocks(inspection),{steps}=blocks;return inspection.
kind==="classification"?{steps,columns:[await classifierColumn(blocks)]}:inspection.kind==="language\
-modeling"?{steps,columns:[await languageModelColumn(blocks)]}:{steps,columns:[await encoderColumn(blocks),
decoderColumn(blocks)]}}async function classifierColumn(blocks){let{text,model,label,classes,pooling}=blocks.
inspection,layers=model.num_encoder_layers,stack2=await blocks.detailedStack("encoder",text.tokens,text.
text,layers),sorted=[...classes].sort((a,b)=>b.probability-a.probability),door={tab:blocks.first},pool=blocks.
step(`pool_${pooling}`,door),softmax=blocks.step("label",door,{label},()=>probabilityBars(sorted));return[
...stack2,block("pool",pool),block("softmax",softmax,bestTwo(sorted)),block("",softmax,`\u2192 ${label}`,
{tokens:!0})]}async function languageModelColumn(blocks){let{text,model,inputs,next}=blocks.inspection,
read=[...inputs,...text.tokens.slice(-1)],layers=model.num_decoder_layers,stack2=await blocks.detailedStack(
"decoder",read,text.text,layers),door={tab:blocks.first};return[...stack2,...blocks.prediction(next,
door,pieceText(next[0].piece),door)]}async function encoderColumn(blocks){let{source,model}=blocks.inspection;
return blocks.detailedStack("encoder",source.tokens,source.text,model.num_encoder_layers)}function decoderColumn(blocks){
let{inspection}=blocks,{model,inputs,target,predictions,beam}=inspection,layers=model.num_decoder_layers,
at=clamp(state.at,predictions.length-1),prediction=predictions[at],alternatives=[prediction,...prediction.
alternatives];alternatives.sort((a,b)=>b.probability-a.probability);let read=inputs.slice(0,at+1),place={
place:at+1,count:target.tokens.length,pieces:piecesText(read)},reading=blocks.step("read",{tab:"word\
s"},place),self=attentionStep(blocks,"masked","decoder",read,at),cross=attentionStep(blocks,"cross",
"cross",inspection.source.tokens,at),mapping=blocks.step("decoder_ffn",{tab:"model",symbol:"FFN"},{layers}),
sublayers=[["masked",self],["cross",cross]];return[block("",reading,shortened(piecesText(read),!0),{
tokens:!0}),block("embedding",reading,`${read.length} \xD7 ${model.d_model}`),block("positions",reading),
...blocks.layers(layers,sublayers,mapping,mapping),...blocks.prediction(alternatives,{tab:"words",at},
pieceText(prediction.piece),{tab:beam?"beam":"words"})]}function attentionStep(blocks,name,kind,keys,at){
let{inspection}=blocks,{layer,head,row,column,weight}=strongestWeight(inspection,kind,keys,at),door={
tab:"attention",kind,layer,head:String(head)},values={layer,head,to:pieceText(keys[column].piece),weight:n(
weight,2),before:pieceText(inspection.inputs[at].piece)},weights=weightsOf(attentionOfKind(inspection,
kind),layer,head);return blocks.step(name,door,values,()=>topWeights(keys,i=>weights(row,i),column))}var READING_TIME=2600;async function buildWhole(panel2,inspection){let tokens=inspection.target?.tokens??
[],{steps,columns}=await modelSteps(inspection),picture=modelPicture(steps,columns),last=steps.length-
1,pieces=tokens.map(({piece})=>piece),chosen=tokens.map((token,i)=>button(pieceText(token.piece),()=>chooseToken(
i),{class:"token",dir:"auto"})),drawing=div("whole"),detail=h("div",{class:"whole-detail","aria-live":"\
polite"}),control=stepper({label:t("column.step"),last,value:min(state.part,last),time:READING_TIME,
onEnd:tokens.length?nextToken:void 0},showStep);panel2.append(figure({key:"whole.model",chart:div("w\
hole-figure",control.field,drawing,detail,tokens.length>0&&div("",note(t("whole.tokens")),tokenRow(t(
"whole.tokens"),chosen,pieces,state.at))),table:()=>[columnTitles("step name meaning"),steps.map(({name,
note:text},i)=>[i+1,t(`whole.${name}_title`),text])]})),draw();function draw(){let titles=columns.length>
1?["encoder","decoder"]:[inspection.attention[0].kind],{links,blocks}=picture,current=blocks.findIndex(
({step})=>step===state.part);links.forEach((link,i)=>link.addEventListener("focus",()=>{blocks[i].step!==
state.part&&control.set(blocks[i].step)})),drawing.replaceChildren(div("whole-titles",titles.map(name=>span(
"",t(`whole.${name}`)))),roving(div("",picture.element),[...links].reverse(),links.length-1-max(0,current))),
setPressed(chosen,min(state.at,tokens.length-1)),showStep(min(state.part,last))}async function chooseToken(at){
change({at}),{steps,columns}=await modelSteps(inspection),picture=modelPicture(steps,columns),draw()}
function nextToken(){let hasNext=state.at<tokens.length-1;return chooseToken(hasNext?state.at+1:0),hasNext?
steps.findIndex(({name})=>name==="read"):0}function showStep(to){change({part:to});let{name,note:text,
chart,door}=steps[to];picture.links.forEach((link,i)=>{let{step}=picture.blocks[i];link.setAttribute(
"class",`block${step===to?" now":step<to?" done":""}`)}),detail.replaceChildren(stack(div("",h("h3",
{},t(`whole.${name}_title`)),para("",text)),chart(),door.tab&&h("a",{href:addressOf(door)},t("whole.\
open",{view:t(`tab.${door.tab}`)}))))}}async function buildWords(panel2,inspection){let{predictions}=inspection,[list,detail]=[div(""),div(
"")],atTemperature=predictions;canCompute&&panel2.append(div("controls",slider(t("words.temperature"),
{min:.1,max:3,step:.1,value:state.temperature,show:value=>n(value,1)},temperature=>{change({temperature}),
later()}))),panel2.append(list,detail);let later=debounce(200,applyTemperature);await applyTemperature();
async function applyTemperature(){let{temperature}=state;try{let adjusted=canCompute&&temperature!==
1?(await fetchInspection({temperature,occlusion:!1}))?.predictions??predictions:predictions;if(temperature!==
state.temperature)return;atTemperature=adjusted,draw()}catch(error){temperature===state.temperature&&
list.replaceChildren(h("p",{class:"wrong",role:"alert"},error.message))}}function draw(){let first=min(
state.at,predictions.length-1);list.replaceChildren(tokenFigure(predictions.map((token,i)=>({...token,
probability:atTemperature[i].probability})),showToken,first,()=>[columnTitles("place piece probabili\
ty rank entropy best_alternative"),atTemperature.map((token,i)=>[i+1,token.piece,token.probability,token.
rank,token.entropy,token.alternatives[0]?`${pieceText(token.alternatives[0].piece)} ${n(token.alternatives[0].
probability)}`:"\u2013"])])),showToken(first)}function showToken(at){change({at}),setPressed(list.querySelectorAll(
".token"),at);let[prediction,original]=[atTemperature[at],predictions[at]],before=predictions.slice(
max(0,at-6),at).map(token=>pieceText(token.piece)).join(" "),[all,originals]=[prediction,original].map(
token=>[token,...token.alternatives]),use=alternative=>canCompute&&linkButton(t("words.use"),()=>{let prefix=[
...predictions.slice(0,at).map(token=>token.id),alternative.id].join(".");change({...OWN_OUTPUT,prefix,
at,more:inspection.kind==="translation"?0:max(8,predictions.length-at-1)}),announce(t("words.used",{
piece:pieceText(alternative.piece)})),mh.render(!0)},t("words.use_this",{piece:pieceText(alternative.
piece)})),tag=span("tag",t(original.forced?"words.given":"words.chosen")),shown=i=>atTemperature===predictions?
n(all[i].probability):`${n(all[i].probability)} (${n(originals[i].probability)})`;detail.replaceChildren(
figure({key:"words.alternatives",values:{place:at+1,piece:pieceText(prediction.piece)},about:before?
t("words.after",{before}):t("words.first"),chart:div("",facts([[t("column.probability"),n(prediction.
probability,4)],[t("column.rank"),integer(prediction.rank)],[t("words.entropy"),n(prediction.entropy)]]),
bars(all.map((alternative,i)=>[pieceText(alternative.piece),alternative.probability,shown(i),i?use(alternative):
tag,!i]),1),atTemperature!==predictions&&note(t("words.temperature_note",{temperature:n(state.temperature,
1)})),!canCompute&&note(t("words.needs_server"))),table:()=>[columnTitles("piece probability log_pro\
bability"),all.map(alternative=>[alternative.piece,alternative.probability,alternative.log_probability])]}))}}var LANGUAGES={en:"English",ko:"\uD55C\uAD6D\uC5B4"},THEMES=["auto","light","dark"],[tabs,panel,settings]=[
"tabs","panel","settings"].map(byId),BUILD={translate:buildTranslate,whole:buildWhole,words:buildWords,
alignment:buildAlignment,attention:buildAttention,steps:buildSteps,beam:buildBeam,training:buildTraining,
model:buildModel,card:buildCard,classify:buildClassify,continue:buildContinue},renderCount=0;function drawSettings(){
let models=mh.about.models.map(({name})=>name),key=h("input",{type:"password",autocomplete:"off",onchange:()=>{
mh.key=key.value.trim(),render()}});key.value=mh.key,settings.replaceChildren(canCompute&&!hasWorker?
h("a",{href:"docs"},"API"):"",copyButton(t("settings.link"),()=>location.href,t("settings.link_hint")),
models.length>1?choice(t("settings.model"),models,currentModel().name,model=>goTo({...OWN_OUTPUT,...AS_TRAINED,
model,q:textFor(model),kind:"",layer:-1,head:"mean",other:"",beam:"",sentence:0})):"",mh.about.key_required?
h("label",{class:"field"},span("",t("settings.key")),key):"",h("div",{class:"segments",role:"group",
"aria-label":t("settings.language")},Object.entries(LANGUAGES).map(([code,name])=>button(name,()=>setLanguage(
code),{lang:code,"aria-pressed":code===mh.language||"false"}))),choice(t("settings.theme"),THEMES.map(
theme=>[theme,t(`theme.${theme}`)]),document.documentElement.dataset.theme,theme=>{saveSetting("them\
e",theme),applyTheme(theme)}))}var applyTheme=theme=>{document.documentElement.dataset.theme=theme&&
THEMES.includes(theme)?theme:"auto"};async function setLanguage(language){if(mh.strings[language]??=
await loadStrings(language),mh.language=language,saveSetting("language",language),document.documentElement.
lang=language,document.querySelector(".skip").textContent=t("skip"),mh.about){let focused=settings.contains(
document.activeElement);await render(!0),focused&&settings.querySelector(`[lang=${language}]`).focus()}}
function drawTabs(){let names=availableViews();names.includes(state.tab)||([state.tab]=names);let current=names.
indexOf(state.tab),focused=tabs.contains(document.activeElement),buttons=names.map((name2,i)=>button(
t(`tab.${name2}`),()=>open(name2),{role:"tab",id:`tab-${name2}`,"aria-controls":"panel","aria-select\
ed":i===current||"false"}));aria(tabs,"label",t("tabs"));let row=roving(h("div",{class:"tabs-row",role:"\
presentation"},buttons),buttons,current,to=>open(names[to]));tabs.replaceChildren(row),row.scrollLeft=
buttons[current].offsetLeft-row.offsetLeft-(row.clientWidth-buttons[current].offsetWidth)/2,focused&&
buttons[current].focus(),aria(panel,"labelledby",`tab-${state.tab}`);let{name,task,source,target}=currentModel(),
direction=`${languageName(source)} \u2192 ${languageName(target)}`,model=task==="translation"?direction:
name;document.title=`${t(`tab.${state.tab}`)}: ${model} \u2013 manyheads`;function open(tab){change(
{tab}),render()}}async function render(keepScroll){let number=renderCount+=1;drawSettings(),drawTabs();
let view=TABS[state.tab],top=keepScroll?window.scrollY:0,{activeElement}=document,focusKey=keepScroll&&
activeElement instanceof HTMLElement&&panel.contains(activeElement)&&(activeElement.dataset.focus||"\
-");aria(panel,"busy","true");try{let inspection=view.needsInspection?await fetchInspection():null;if(number!==
renderCount)return;let isFirst=state.tab===availableViews()[0],usesModel=view.needsInspection||view.
tasks,isForced=state.prefix||state.target,content=stack(hasWorker&&isFirst&&introduction(),usesModel&&
!(view.hasSwitches&&inspection)&&changeNotice(),view.needsInspection&&!inspection&&emptyNotice(),inspection&&
(!view.showsText||isForced)&&textSummary(inspection));panel.replaceChildren(content),(inspection||!view.
needsInspection)&&await BUILD[state.tab](content,inspection)}catch(error){number===renderCount&&panel.
replaceChildren(stack(changeNotice(),h("p",{class:"notice wrong",role:"alert"},error.message)))}number===
renderCount&&(focusKey&&(panel.querySelector(`[data-focus="${CSS.escape(focusKey)}"]`)||panel).focus(),
window.scrollTo(0,top),aria(panel,"busy","false"),showEffect())}function introduction(){let{task,source,
target}=currentModel(),card=availableViews().includes("card")&&linkButton(t("intro.card"),()=>goTo({
tab:"card"}));return para("note intro",t(`intro.${task}`,{source:languageName(source),target:languageName(
target),size:n((mh.about.weights?.bytes??0)/2**20,1)})," ",card)}function emptyNotice(){let[first]=availableViews(),
{examples:[q]}=currentModel();return div("empty",h("p",{},t("empty")),div("controls",button(t(`tab.${first}`),
()=>goTo({tab:first}),{class:"primary"}),q&&button(t("translate.example"),()=>goTo({q}))))}function reportHeight(){
document.documentElement.classList.add("framed"),new ResizeObserver(()=>window.parent.postMessage({height:document.
body.offsetHeight},"*")).observe(document.body)}function readState(){readAddress(),canCompute&&(mh.key||
!mh.about.key_required)&&!state.prefix&&(state.q||=currentModel().examples[0]??"")}async function start(){
mh.render=render,window!==window.top&&reportHeight(),applyTheme(savedSetting("theme"));let wanted=[new URLSearchParams(
location.search).get("lang"),savedSetting("language"),embedded?.language,navigator.language.slice(0,
2)];await setLanguage(wanted.find(language=>language&&Object.keys(LANGUAGES).includes(language))??"e\
n"),mh.about=await loadAbout(),readState();let{project}=mh.about;project&&document.body.append(h("fo\
oter",{class:"footer"},h("a",{href:project},project))),window.addEventListener("popstate",()=>{location.
hash!==addressOf()&&(readState(),render())}),mh.about.files?.length&&acceptDroppedFiles(),await render(),
byId("starting").remove()}start().catch(error=>{mh.strings[mh.language]&&(panel.replaceChildren(error.
message),document.getElementById("starting")?.remove())});})();
