"use strict";var manyheads=(()=>{var __defProp=Object.defineProperty;var __getOwnPropDesc=Object.getOwnPropertyDescriptor;var __getOwnPropNames=Object.getOwnPropertyNames;var __hasOwnProp=Object.prototype.hasOwnProperty;var __export=(target,all)=>{for(var name in all)__defProp(target,name,{get:all[name],enumerable:!0})},
__copyProps=(to,from,except,desc)=>{if(from&&typeof from=="object"||typeof from=="function")for(let key of __getOwnPropNames(
from))!__hasOwnProp.call(to,key)&&key!==except&&__defProp(to,key,{get:()=>from[key],enumerable:!(desc=
__getOwnPropDesc(from,key))||desc.enumerable});return to};var __toCommonJS=mod=>__copyProps(__defProp({},"__esModule",{value:!0}),mod);var model_exports={};__export(model_exports,{answerRequest:()=>answerRequest,bestTokens:()=>bestTokens,
createEngine:()=>createEngine,fromBase64:()=>fromBase64,loadPageModel:()=>loadPageModel,makePause:()=>makePause,
pageModel:()=>pageModel,translateIds:()=>translateIds});var LAYOUT_ENTRY={offset:8,size:16,type:24,bytes:32},EngineError=class extends Error{},EngineMemory=class{constructor(exports){
this.memory=exports.memory;let start=alignUp(exports.__heap_base.value,16);this.free=[{start,size:this.
memory.buffer.byteLength-start}],this.blocks=new Map,this.layout=this.readLayout(exports.struct_layout)}current=null;get views(){
let{buffer}=this.memory;return this.current?.bytes.buffer!==buffer&&(this.current={bytes:new Uint8Array(
buffer),floats:new Float32Array(buffer),ints:new Int32Array(buffer),data:new DataView(buffer)}),this.
current}allocate(bytes){let size=alignUp(Math.max(bytes,1),16),index=this.free.findIndex(block2=>block2.
size>=size);index<0&&(this.grow(size),index=this.free.length-1);let block=this.free[index],{start}=block;
return block.size===size?this.free.splice(index,1):Object.assign(block,{start:start+size,size:block.
size-size}),this.blocks.set(start,size),start}release(start){let size=this.blocks.get(start);if(size===
void 0)throw new Error(`no block begins at ${start}`);this.blocks.delete(start);let index=this.free.
findIndex(block=>block.start>start);index<0&&(index=this.free.length);let before=this.free[index-1],
after=this.free[index];after&&start+size===after.start&&(size+=after.size,this.free.splice(index,1)),
before&&before.start+before.size===start?before.size+=size:this.free.splice(index,0,{start,size})}grow(size){
let end=this.memory.buffer.byteLength,last=this.free.at(-1),available=last&&last.start+last.size===end?
last.size:0,pages=Math.ceil((size-available)/65536);try{if(end/65536+pages>65536)throw new RangeError(
"4 GiB");this.memory.grow(pages)}catch{let mebibytes=Math.ceil(size/1048576);throw new EngineError(`\
there is no memory for ${mebibytes} MiB more: the text or the model is too large for this page.`)}last&&
available?last.size+=pages*65536:this.free.push({start:end,size:pages*65536})}scope(){return new MemoryScope(
this)}bytes(address,count){return this.views.bytes.subarray(address,address+count)}floats(address,count){
return this.views.floats.subarray(address/4,address/4+count)}ints(address,count){return this.views.ints.
subarray(address/4,address/4+count)}longs(address,count){return new BigInt64Array(this.memory.buffer,
address,count)}doubles(address,count){return new Float64Array(this.memory.buffer,address,count)}constant(name){
return this.layoutOf(name).offset}readLayout(structLayout){let start=this.allocate(8),first=structLayout(
start),{data}=this.views,count=Number(data.getBigInt64(start,!0));this.release(start);let layout=new Map;
for(let entry=first;entry<first+count*LAYOUT_ENTRY.bytes;entry+=LAYOUT_ENTRY.bytes){let[offset,size]=[
LAYOUT_ENTRY.offset,LAYOUT_ENTRY.size].map(field=>Number(data.getBigInt64(entry+field,!0)));layout.set(
this.text(data.getUint32(entry,!0)),{offset,size,type:this.text(data.getUint32(entry+LAYOUT_ENTRY.type,
!0))})}return layout}layoutOf(name){let found=this.layout.get(name);if(!found)throw new Error(`there\
 is no ${name} in the layout of the module`);return found}sizeOf(struct){return this.layoutOf(struct).
size}findField(struct,path){let offset=0,type=struct;for(let name of path.split(".")){let field=this.
layoutOf(`${type}.${name}`);offset+=field.offset,type=field.type}return{offset,type}}write(struct,address,values){
this.bytes(address,this.sizeOf(struct)).fill(0),this.update(struct,address,values)}update(struct,address,values){
for(let[name,value]of Object.entries(values)){let{offset,type}=this.findField(struct,name);this.layout.
has(type)?this.write(type,address+offset,value??{}):this.set(type,address+offset,Number(value??0))}}set(type,address,value){
let{data}=this.views;type==="int64"?data.setBigInt64(address,BigInt(value),!0):type==="int32"?data.setInt32(
address,value,!0):type==="float"?data.setFloat32(address,value,!0):type==="double"?data.setFloat64(address,
value,!0):data.setUint32(address,value,!0)}get(struct,address,path){let{offset,type}=this.findField(
struct,path),{data}=this.views;return type==="int64"?Number(data.getBigInt64(address+offset,!0)):type===
"int32"?data.getInt32(address+offset,!0):type==="float"?data.getFloat32(address+offset,!0):type==="d\
ouble"?data.getFloat64(address+offset,!0):data.getUint32(address+offset,!0)}text(address){let{bytes}=this.
views;return new TextDecoder().decode(bytes.subarray(address,bytes.indexOf(0,address)))}},MemoryScope=class{constructor(memory){
this.memory=memory,this.starts=new Set}allocate(bytes){let start=this.memory.allocate(bytes);return this.
starts.add(start),start}release(start){this.starts.delete(start)&&this.memory.release(start)}longs(values){
let start=this.allocate(8*values.length),target=this.memory.longs(start,values.length);for(let i=0;i<
values.length;i++)target[i]=BigInt(values[i]);return start}floats(values){let start=this.allocate(4*
values.length);return this.memory.floats(start,values.length).set(values),start}ints(values){let start=this.
allocate(4*values.length);return this.memory.ints(start,values.length).set(values),start}doubles(values){
let start=this.allocate(8*values.length);return this.memory.doubles(start,values.length).set(values),
start}struct(type,values){let start=this.allocate(this.memory.sizeOf(type));return this.memory.write(
type,start,values),start}structs(type,items){let size=this.memory.sizeOf(type),start=this.allocate(size*
items.length);return items.forEach((values,i)=>this.memory.write(type,start+i*size,values)),start}close(){
for(let start of this.starts)this.memory.release(start);this.starts.clear()}},alignUp=(value,unit)=>Math.
ceil(value/unit)*unit;var HEADER_FORMAT=1,TENSOR_BYTES={float32:4,int8:1},TENSOR_TYPES={fp32:"float32",int8:"int8"},MODEL_PARTS={
translation:["encoder","decoder","memory_kv"],classification:["encoder","head"],"language-modeling":[
"decoder","window"]},LARGEST_SIZE=2**31;function checkHeader(header,panelWidth){let check=(valid,name)=>{
if(!valid)throw new EngineError(`the file of the model is damaged: ${name} is not what it should be.`)};
if(check(header!==null&&typeof header=="object","the header"),header.format!==HEADER_FORMAT)throw new EngineError(
`the model has format ${header.format}, but this engine reads format ${HEADER_FORMAT}.`);if(header.panel_width!==
panelWidth)throw new EngineError(`the model has panels of ${header.panel_width}, but the engine has \
panels of ${panelWidth}.`);let isSize=value=>Number.isInteger(value)&&value>0&&value<LARGEST_SIZE;check(
MODEL_PARTS[header.task]?.every(part=>header[part]),"task"),check(TENSOR_TYPES[header.precision],"pr\
ecision"),check(header.special_ids&&["unk","pad","bos","eos"].every(name=>Number.isInteger(header.special_ids[name])),
"special_ids"),check(header.search&&Object.values(header.search).every(Number.isFinite),"search"),check(
isSize(header.search.beam_size??1)&&Number.isInteger(header.search.max_length_offset??0),"search"),check(
header.window===void 0||isSize(header.window),"window"),check(Number.isInteger(header.bytes)&&header.
bytes>0,"bytes");let{model,tensors,positions}=header;check(model&&[model.d_model,model.num_heads,model.
max_positions].every(isSize)&&model.d_model%model.num_heads===0,"model"),check(["sinusoidal","learne\
d","rotary"].includes(model.positions),"model.positions");let width=model.d_model;check(model.positions===
"learned"||(model.positions==="rotary"?width/model.num_heads:width)%2===0,"model.d_model"),check(Array.
isArray(tensors),"tensors");let count=({shape})=>shape.reduce((product,size)=>product*size,1);tensors.
forEach((tensor,i)=>{let valid=tensor&&TENSOR_BYTES[tensor.type]&&Array.isArray(tensor.shape)&&tensor.
shape.every(isSize)&&Number.isInteger(tensor.offset);check(valid&&tensor.offset>=0&&tensor.offset%16===
0&&tensor.offset+count(tensor)*TENSOR_BYTES[tensor.type]<=header.bytes,`tensor ${i}`)});let end=Math.
max(0,...tensors.map(tensor=>tensor.offset+count(tensor)*TENSOR_BYTES[tensor.type]));check(header.bytes===
Math.ceil(end/16)*16,"bytes");let checkTensor=(index,type,size,name)=>check(tensors[index]?.type===type&&
count(tensors[index])===size,name),checkMatrix=(index,scale,outputs,inputs,name)=>{check(isSize(outputs)&&
isSize(inputs),name);let padded=Math.ceil(outputs/panelWidth)*panelWidth;return checkTensor(index,TENSOR_TYPES[header.
precision],padded*inputs,`the weight of ${name}`),header.precision==="int8"&&checkTensor(scale??-1,"\
float32",padded,`the scale of ${name}`),padded},checkLinear=(linear,inputs,outputs,name)=>{check(linear&&
linear.inputs===inputs&&linear.outputs===outputs,name);let padded=checkMatrix(linear.weight,linear.scale,
outputs,inputs,name);linear.bias!==null&&checkTensor(linear.bias,"float32",padded,`the bias of ${name}`)},
checkNorm=(norm,name)=>{check(norm&&(norm.weight!==null||norm.bias===null),name);for(let index of[norm.
weight,norm.bias])index!==null&&checkTensor(index,"float32",width,name)},checkModel=(struct,kind)=>{
let{layers,norms,d_ff:inner,activation,vocabulary}=struct,cross=kind==="decoder"&&header.task==="tra\
nslation";check(Array.isArray(layers)&&layers.length===struct.num_layers,`${kind}.layers`),check(Array.
isArray(norms)&&norms.length===(cross?3:2)*layers.length+1,`${kind}.norms`),check(struct.d_model===width&&
struct.num_heads===model.num_heads&&isSize(inner)&&isSize(vocabulary),kind),check(Number.isInteger(activation)&&
activation>=0&&activation<=5&&[0,1,!1,!0].includes(struct.pre_norm),`${kind}.activation`),check(struct.
format===(header.precision==="int8"?2:0),`${kind}.format`),check(Number.isFinite(struct.embedding_scale)&&
Number.isFinite(struct.norm_epsilon),`${kind}.embedding_scale`),layers.forEach((layer,l)=>{let name=`${kind}\
.layers[${l}]`;checkLinear(layer?.self_qkv,width,3*width,`${name}.self_qkv`),checkLinear(layer.self_out,
width,width,`${name}.self_out`);for(let part of["cross_query","cross_out"])cross?checkLinear(layer[part],
width,width,`${name}.${part}`):check(layer[part]===null,`${name}.${part}`);checkLinear(layer.expand,
width,activation===5?2*inner:inner,`${name}.expand`),checkLinear(layer.contract,inner,width,`${name}\
.contract`)}),norms.forEach((norm,n)=>checkNorm(norm,`${kind}.norms[${n}]`)),checkNorm(struct.embedding_norm,
`${kind}.embedding_norm`),checkMatrix(struct.embedding,tensors[struct.embedding]?.scale,vocabulary,width,
`${kind}.embedding`),kind==="decoder"?checkLinear(struct.output,width,vocabulary,"decoder.output"):check(
struct.output===null,"encoder.output");let tables=positions?.[kind];check(tables&&tables.learned===null==
(model.positions!=="learned"),`positions.${kind}`),tables.learned!==null&&checkTensor(tables.learned,
"float32",model.max_positions*width,`positions.${kind}.learned`),check(tables.types===null==!model.token_types,
`positions.${kind}.types`),tables.types!==null&&checkTensor(tables.types,"float32",model.token_types*
width,`positions.${kind}.types`)},{encoder,decoder,head}=header;encoder&&checkModel(encoder,"encoder"),
decoder&&checkModel(decoder,"decoder"),header.memory_kv&&(check(Array.isArray(header.memory_kv)&&header.
memory_kv.length===decoder?.num_layers,"memory_kv"),header.memory_kv.forEach((linear,l)=>checkLinear(
linear,width,2*width,`memory_kv[${l}]`))),head&&(checkLinear(head.pooler,width,width,"head.pooler"),
checkLinear(head.output,width,head.output?.outputs,"head.output")),decoder&&check(Object.values(header.
special_ids).every(id=>id>=0&&id<decoder.vocabulary),"special_ids")}var MIN_POSITIONS=64,PositionTables=class{constructor(exports,scope,settings,learned,types){let{d_model:width,
num_heads:heads}=settings;this.exports=exports,this.scope=scope,this.settings=settings,this.learned=
learned,this.types=types,this.width=width,this.headDim=width/heads,this.count=0,this.table={signals:null,
rotary:null}}tableFor(count){if(this.learned&&count>this.learned.length/this.width){let limit=this.learned.
length/this.width;throw new EngineError(`an input of ${count} tokens is longer than model.max_positi\
ons = ${limit}, the limit of this model.`)}if(count>this.count){this.count=Math.max(MIN_POSITIONS,2*
count),this.learned&&(this.count=Math.min(this.count,this.learned.length/this.width));let rotary=this.
settings.positions==="rotary",signals=rotary?this.typeSignals(this.count):this.addType(this.positionSignals(
this.count));this.table={signals:signals&&this.scope.floats(signals),rotary:rotary?this.scope.floats(
this.compute("rotary_positions",this.count,this.headDim)):null}}return this.table}compute(name,count,width){
let{memory}=this.scope,start=memory.allocate(4*count*width);this.exports[name](BigInt(count),BigInt(
width),start);let table=memory.floats(start,count*width).slice();return memory.release(start),table}positionSignals(count){
return this.learned?this.learned.slice(0,count*this.width):this.compute("sinusoidal_positions",count,
this.width)}typeSignals(count){return this.types&&this.addType(new Float32Array(count*this.width))}addType(signals){
if(this.types)for(let i=0;i<signals.length;i++)signals[i]+=this.types[i%this.width];return signals}tokenSignals(count,types,withPositions){
let{width}=this,added=withPositions&&this.settings.positions!=="rotary";if(!added&&!this.types)return null;
added&&this.tableFor(count);let signals=added?this.positionSignals(count):new Float32Array(count*width);
if(this.types)for(let s=0;s<count;s++){let type=types?.[s]??0;for(let i=0;i<width;i++)signals[s*width+
i]+=this.types[type*width+i]}return signals}};var STEPS_PER_CALL=32,NAN_MESSAGE="the model gave values that are not numbers (NaN): its weights are\
 damaged.";async function createEngine(wasmBytes){if(typeof WebAssembly>"u")throw new EngineError("t\
his browser has no WebAssembly.");let module;try{module=await WebAssembly.compile(wasmBytes)}catch(error){
throw new EngineError(`this browser cannot run WebAssembly with SIMD (${error.message}). Use a newer\
 browser.`)}let{exports}=await WebAssembly.instantiate(module,{});return new Engine(exports)}var Engine=class{constructor(exports){
this.exports=exports,this.memory=new EngineMemory(exports),this.panelWidth=Number(exports.panel_width())}async loadModel(header,readTensors){
checkHeader(header,this.panelWidth);let scope=this.memory.scope();try{let block=scope.allocate(header.
bytes),written=0;if(await readTensors((offset,bytes)=>{if(!(offset>=0&&offset+bytes.length<=header.bytes))
throw new EngineError("the tensors of the model are longer than its header says.");this.memory.bytes(
block+offset,bytes.length).set(bytes),written+=bytes.length}),written!==header.bytes)throw new EngineError(
`the tensors of the model have ${written} bytes instead of ${header.bytes}.`);return new EngineModel(
this,header,scope,block)}catch(error){throw scope.close(),error}}call(name,failure,...args){let result=Number(
this.exports[name](...args,failure));if(result===-2)throw new EngineError(NAN_MESSAGE);if(result!==-1)
return result;let[value,low,high]=["value","low","high"].map(field=>this.memory.get("Failure",failure,
field)),quantity=this.memory.text(this.memory.get("Failure",failure,"quantity"));throw new EngineError(
`the engine was given ${quantity} ${value}; the range is ${low}..${high}.`)}},EngineModel=class{constructor(engine,header,scope,block){
let{memory}=engine;this.engine=engine,this.memory=memory,this.header=header,this.scope=scope,this.block=
block,this.task=header.task,this.settings=header.model,this.search=header.search,this.special=header.
special_ids,this.window=header.window,this.width=header.model.d_model,this.heads=header.model.num_heads,
this.headDim=this.width/this.heads,this.format=memory.constant(header.precision==="int8"?"INT8":"FLO\
AT32"),this.layers={encoder:header.encoder?.num_layers??0,decoder:header.decoder?.num_layers??0},this.
vocabulary=header.decoder?.output.outputs??0,this.embeddings=new Map,this.encoder=header.encoder?this.
writeModel(header.encoder):0,this.decoder=header.decoder?this.writeModel(header.decoder):0,this.memoryKv=
header.memory_kv?scope.structs("Linear",header.memory_kv.map(linear=>this.pointers(linear))):0,this.
positions=Object.fromEntries(Object.entries(header.positions).map(([kind,{learned,types}])=>[kind,new PositionTables(
engine.exports,scope,header.model,this.tensorFloats(learned),this.tensorFloats(types))])),this.failure=
scope.struct("Failure",{})}close(){this.scope.close()}address(tensor){return tensor===null?0:this.block+
this.header.tensors[tensor].offset}tensorFloats(tensor){if(tensor===null)return null;let count=this.
header.tensors[tensor].shape.reduce((product,size)=>product*size,1);return this.memory.floats(this.address(
tensor),count).slice()}pointers(struct){return Object.fromEntries(Object.entries(struct).map(([name,
value])=>["weight","scale","bias"].includes(name)?[name,this.address(value)]:[name,value!==null&&typeof value==
"object"?this.pointers(value):value]))}writeModel(struct){let{layers,norms,embedding,vocabulary,...fields}=struct;
return this.scope.struct("Model",{...this.pointers(fields),layers:this.scope.structs("Layer",layers.
map(layer=>this.pointers(layer))),norms:this.scope.structs("LayerNorm",norms.map(norm=>this.pointers(
norm))),embedding:this.unpackEmbedding(embedding,vocabulary),vocabulary})}unpackEmbedding(tensor,vocabulary){
let unpacked=this.embeddings.get(tensor);if(unpacked!==void 0)return unpacked;let{width,memory}=this,
panel=this.engine.panelWidth,{type,scale}=this.header.tensors[tensor],start=this.scope.allocate(4*vocabulary*
width),{buffer}=memory.memory,packed=new(type==="int8"?Int8Array:Float32Array)(buffer,this.address(tensor),
Math.ceil(vocabulary/panel)*panel*width),scales=scale===void 0?null:memory.floats(this.address(scale),
vocabulary),rows=memory.floats(start,vocabulary*width);for(let v=0;v<vocabulary;v++){let factor=scales?
scales[v]:1,first=Math.floor(v/panel)*panel*width+v%panel;for(let i=0;i<width;i++)rows[v*width+i]=packed[first+
i*panel]*factor}return this.embeddings.set(tensor,start),start}embeddingRows(side){let{embedding,vocabulary}=this.
header[side];return this.memory.floats(this.unpackEmbedding(embedding,vocabulary),vocabulary*this.width)}workspaceBytes(model,rows,keys){
return 4*Number(this.engine.exports.workspace_size(model,BigInt(rows),BigInt(keys),1n))}headFactors(scope,factors,layers){
let count=layers*this.heads;if(factors&&factors.length!==count)throw new EngineError(`${factors.length}\
 factors of heads were given, but there are ${count} heads.`);return factors?scope.floats(factors):0}encode(ids,options={}){
if(!ids.length)throw new EngineError("the text has no tokens.");let{memory,width,heads}=this,layers=this.
layers.encoder,length=ids.length,scratch=memory.scope(),encodingScope=memory.scope();try{let indices=ids.
map((_,i)=>i),positions=this.encoderPositions(scratch,length,options),weights=options.attention?scratch.
allocate(4*layers*length*heads*length):0,vectors=options.vectors?scratch.allocate(4*layers*length*3*
width):0,output=this.header.head?scratch.allocate(4*length*width):0,input=scratch.struct("EncoderInp\
ut",{tokens:scratch.longs(ids),sentence_ids:scratch.longs(indices.map(()=>0)),positions:scratch.longs(
indices),starts:scratch.longs([0,length]),position_signals:positions.signals,rotary:positions.rotary,
sentences:1,max_length:length,heads:{weights,vectors,factors:this.headFactors(scratch,options.headFactors?.
encoder,layers)},output}),memoryLayers=this.memoryKv?this.layers.decoder:0,memoryAddresses=Array.from(
{length:2*memoryLayers},()=>encodingScope.allocate(4*length*width)),pointers=encodingScope.ints(memoryAddresses),
workspace=scratch.allocate(this.workspaceBytes(this.encoder,length,length));return this.engine.call(
"encode",this.failure,this.encoder,this.memoryKv,BigInt(memoryLayers),input,pointers,workspace,1),{length,
pointers,memoryAddresses,attention:weights?transposeHeads(memory.floats(weights,layers*length*heads*
length),layers,length,heads,length):new Float32Array(0),vectors:memory.floats(vectors,vectors&&layers*
length*3*width).slice(),output:memory.floats(output,output&&length*width).slice(),release:()=>encodingScope.
close()}}catch(error){throw encodingScope.close(),error}finally{scratch.close()}}encoderPositions(scratch,length,{
types=null,positions=!0}){let tables=this.positions.encoder,table=positions?tables.tableFor(length):
{signals:null,rotary:null};if(positions&&!types)return table;let signals=tables.tokenSignals(length,
types,positions);return{signals:signals&&scratch.floats(signals),rotary:table.rotary}}classify(ids,options={}){
let encoding=this.encode(ids,options);encoding.release();let{width,settings}=this,pooled=new Float32Array(
width);if(settings.pooling==="cls")pooled.set(encoding.output.subarray(0,width));else{for(let s=0;s<
ids.length;s++)for(let i=0;i<width;i++)pooled[i]+=encoding.output[s*width+i];for(let i=0;i<width;i++)
pooled[i]/=ids.length}let hidden=this.applyLinear("pooler",pooled).map(settings.pooler==="tanh"?Math.
tanh:x=>Math.max(x,0)),logits=this.applyLinear("output",hidden);if(logits.some(Number.isNaN))throw new EngineError(
NAN_MESSAGE);return{logits,attention:{encoder:encoding.attention}}}applyLinear(name,vector){let scope=this.
memory.scope();try{let linear=this.header.head[name],{outputs}=linear,result=scope.allocate(4*outputs);
return this.engine.exports.linear_layer(scope.struct("Linear",this.pointers(linear)),BigInt(this.format),
scope.floats(vector),1n,scope.allocate(4*vector.length+128),result),this.memory.floats(result,outputs).
slice()}finally{scope.close()}}logProbabilities(logits){let scope=this.memory.scope(),normalizer=this.
engine.exports.log_sum_exp(scope.floats(logits),BigInt(logits.length));return scope.close(),Float32Array.
from(logits,value=>value-normalizer)}forward(source,target,options={}){let encoding=source&&this.encode(
source,options);try{let{logits,attention}=this.decodeTarget(encoding,target,{...options,allLogits:!0});
return{logits,attention:{...attention,...encoding&&{encoder:encoding.attention}}}}finally{encoding?.
release()}}targetAttention(encoding,target,options={}){return this.decodeTarget(encoding,target,{...options,
attention:!0,withLogits:!1}).attention}decodeTarget(encoding,target,options){let cache=new DecoderCache(
this,encoding,target.length,options);try{return cache.append(target,options)}finally{cache.release()}}headVectors({
kind,layer,head},source,target,options={}){let{width,headDim}=this,pick=(array,first,stride,count)=>{
let result=new Float32Array(count*headDim);for(let i=0;i<count;i++)result.set(array.subarray(first+i*
stride,first+i*stride+headDim),i*headDim);return result},pickAll=(array,first,stride,count)=>{let[queries,
keys,values]=[0,1,2].map(i=>pick(array,first+i*width+head*headDim,stride,count));return{queries,keys,
values}},encoding=source&&this.encode(source,{...options,vectors:kind==="encoder"}),encoded=encoding,
cache=null;try{if(kind==="encoder")return pickAll(encoded.vectors,layer*encoded.length*3*width,3*width,
encoded.length);cache=new DecoderCache(this,encoding,target.length,options);let{vectors}=cache.append(
target,{causal:options.causal,vectors:kind});if(kind==="decoder")return pickAll(vectors,layer*3*width,
this.layers.decoder*3*width,target.length);let size=encoded.length*headDim,[keys,values]=encoded.memoryAddresses.
slice(2*layer,2*layer+2).map(address=>this.memory.floats(address+4*head*size,size).slice());return{queries:pick(
vectors,layer*width+head*headDim,this.layers.decoder*width,target.length),keys,values}}finally{cache?.
release(),encoding?.release()}}},DecoderCache=class{constructor(model,encoding,capacity,options={}){
let{memory,layers,width}=model;this.model=model,this.encoding=encoding,this.capacity=capacity,this.options=
options,this.memory=memory,this.length=0,this.scope=memory.scope();try{this.store=this.scope.allocate(
4*layers.decoder*2*capacity*width),this.factors=Object.fromEntries(["decoder","cross"].map(kind=>[kind,
model.headFactors(this.scope,options.headFactors?.[kind],layers.decoder)]))}catch(error){throw this.
scope.close(),error}}clear(){this.length=0}release(){this.scope.close()}append(tokens,{allLogits=!1,
attention=!1,causal=!0,vectors=null,withLogits=!0}={}){let{model}=this;if(this.length+tokens.length>
this.capacity)throw new Error(`${tokens.length} tokens do not fit into the KV cache.`);let size=causal&&
!attention&&!vectors?STEPS_PER_CALL:tokens.length,logits=new Float32Array(withLogits?(allLogits?tokens.
length:1)*model.vocabulary:0),captured={attention:{},vectors:new Float32Array(0)};for(let first=0;first<
tokens.length;first+=size){let chunk=tokens.slice(first,first+size);captured=this.appendChunk(chunk,
{allLogits,attention,causal,vectors,withLogits},rows=>logits.set(rows,allLogits?first*model.vocabulary:
0))}return{logits,...captured}}appendChunk(tokens,{allLogits,attention,causal,vectors:kind,withLogits},onLogits){
let{model,memory,encoding}=this,{engine,layers,heads,vocabulary}=model,[rows,cached,sourceLength]=[tokens.
length,this.length,encoding?.length??0],total=cached+rows,scratch=memory.scope();try{let keys=Math.max(
total,sourceLength),sizes={decoder:layers.decoder*heads*total,cross:layers.decoder*heads*sourceLength},
weights=attention?{decoder:scratch.allocate(4*rows*sizes.decoder),cross:scratch.allocate(4*rows*sizes.
cross)}:null,perStep=kind?layers.decoder*(kind==="decoder"?3:1)*model.width:0,vectors=kind?scratch.allocate(
4*rows*perStep):0,headFields=(name,t)=>({weights:weights?weights[name]+4*t*sizes[name]:0,factors:this.
factors[name],vectors:kind===name?vectors+4*t*perStep:0}),size=memory.sizeOf("Step"),steps=scratch.allocate(
size*rows),ids=scratch.longs(tokens);for(let t=0;t<rows;t++)memory.write("Step",steps+t*size,{...this.
stepPositions(cached+t),tokens:ids+8*t,cache:this.store,memory:encoding?.pointers??0,sentences:1,rows:1,
length:causal?cached+t+1:total,capacity:this.capacity,source_length:sourceLength,source_capacity:sourceLength,
shared_cache:1,num_later:causal?0:rows-1-t,self_heads:headFields("decoder",t),cross_heads:headFields(
"cross",t)});let pointers=scratch.ints(tokens.map((_,t)=>steps+t*size)),workspace=scratch.allocate(model.
workspaceBytes(model.decoder,rows,keys)),logits=withLogits?scratch.allocate(4*rows*vocabulary):0;return engine.
call("decoder_steps",model.failure,model.decoder,pointers,BigInt(rows),BigInt(keys),workspace,logits,
1),this.length=total,withLogits&&onLogits(allLogits?memory.floats(logits,rows*vocabulary):memory.floats(
logits+4*(rows-1)*vocabulary,vocabulary)),{attention:weights?this.collectWeights(weights,rows,cached,
total,causal):{},vectors:memory.floats(vectors,rows*perStep).slice()}}finally{scratch.close()}}zeroPosition;stepPositions(position){
let tables=this.model.positions.decoder;if(this.options.positions===!1)return this.zeroPosition??=this.
scope.floats(tables.typeSignals(1)??[0]),{position_signal:tables.types?this.zeroPosition:0,rotary:0};
let{signals,rotary}=tables.tableFor(position+1),{width,headDim}=this.model;return{position_signal:signals?
signals+4*position*width:0,rotary:rotary?rotary+4*position*headDim:0}}collectWeights(weights,rows,cached,total,causal){
let{memory,encoding}=this,{layers,heads}=this.model,count=layers.decoder*heads,collect=(start,longest,lengthOf)=>{
let result=new Float32Array(count*rows*longest);for(let t=0;t<rows;t++){let length=lengthOf(t),step=memory.
floats(start+4*t*count*longest,count*length);for(let head=0;head<count;head++)result.set(step.subarray(
head*length,(head+1)*length),(head*rows+t)*longest)}return result};return{decoder:collect(weights.decoder,
total,t=>causal?cached+t+1:total),...encoding&&{cross:collect(weights.cross,encoding.length,()=>encoding.
length)}}}};function transposeHeads(weights,layers,rows,heads,keys){let result=new Float32Array(weights.
length);for(let l=0;l<layers;l++)for(let r=0;r<rows;r++)for(let h=0;h<heads;h++){let from=((l*rows+r)*
heads+h)*keys;result.set(weights.subarray(from,from+keys),((l*heads+h)*rows+r)*keys)}return result}function makeRandom(seed,sample,context){let key=`${seed},${sample},${context.join(",")}`,hash=salt=>{
let state=2166136261^salt;for(let i=0;i<key.length;i++)state=Math.imul(state^key.charCodeAt(i),16777619);
return state>>>0},[a,b,c,counter]=[hash(0),hash(1),hash(2),1],next=()=>{let sum=a+b+counter++|0;return a=
b^b>>>9,b=c+(c<<3)|0,c=(c<<21|c>>>11)+sum|0,sum>>>0};for(let i=0;i<15;i++)next();return()=>((next()>>>
5)*67108864+(next()>>>6))/9007199254740992}function pickToken(values,sampling,random,suppressed){let excluded=new Set(
suppressed),likeliest2=-1;for(let token=0;token<values.length;token++)!excluded.has(token)&&values[token]>
(values[likeliest2]??-1/0)&&(likeliest2=token);if(!sampling||!random||likeliest2<0)return likeliest2;
let weights=samplingWeights(values,values[likeliest2],sampling,excluded),total=0;for(let weight of weights)
total+=weight;let target=random()*total,cumulative=0;for(let token=0;token<weights.length;token++)if(cumulative+=
weights[token],cumulative>target)return token;return likeliest2}function samplingWeights(values,largest,{
temperature=1,topK=0,topP=1},excluded=new Set){let weights=Float64Array.from(values,(value,token)=>excluded.
has(token)?0:Math.exp((value-largest)/temperature));if(!topK&&topP>=1)return weights;let order=[...weights.
keys()].sort((a,b)=>weights[b]-weights[a]||a-b).slice(0,topK||weights.length),limit=topP*order.reduce(
(sum,token)=>sum+weights[token],0),kept=new Float64Array(weights.length),cumulative=0;for(let token of order){
if(cumulative>=limit)break;kept[token]=weights[token],cumulative+=weights[token]}return kept}var CACHE_MARGIN=8,SearchCancelled=class extends Error{};async function translateIds(model,ids,options={}){
let encoding=model.encode([...ids,model.special.eos],options),search=null;try{let Search=options.causal===
!1?RecomputingSearch:BeamSearch;search=new Search(model,encoding,{...options,maxLength:maxOutputLength(
model,ids.length,options)}),await runSteps(search,options);let{skip=0,lengthPenalty=model.search.length_penalty}=options,
outputs=withoutFirst(search.outputs(),skip,lengthPenalty).filter(options.accept??(()=>!0));if(options.
crossAttention&&outputs.length){let tokens=[...(options.prefix??[]).slice(0,skip),...outputs[0].tokens],
inputs=[model.special.bos,...tokens].slice(0,Math.max(1,tokens.length));outputs[0].crossAttention=model.
targetAttention(encoding,inputs,options).cross}return outputs}finally{search?.close(),encoding.release()}}
function withoutFirst(outputs,count,lengthPenalty){return count?outputs.map(({tokens,tokenScores,ended})=>({
...makeOutput([],[...tokenScores].slice(count),ended,lengthPenalty),tokens:[...tokens].slice(count)})).
sort((a,b)=>b.score-a.score):outputs}function maxOutputLength(model,sourceLength,options={}){let{maxLengthRatio=model.
search.max_length_ratio,maxLengthOffset=model.search.max_length_offset,prefix=[]}=options,limit=Math.
trunc(maxLengthRatio*sourceLength)+maxLengthOffset;return Math.min(Math.max(limit,prefix.length),model.
settings.max_positions-1)}async function runSteps(search,{pause,signal}){for(;search.step();)if(pause&&
await pause(),signal?.aborted)throw new SearchCancelled("the search was cancelled")}var BeamSearch=class{cache;store=0;beam=0;values=0;tokens=0;best=0;beamOptions=0;beams=0;workspace=0;logits=0;capacity=0;maxKeys=0;constructor(model,encoding,options){
let{beamSize=model.search.beam_size,nBest=1,lengthPenalty=model.search.length_penalty,maxLength,prefix=[]}=options;
if(this.model=model,this.encoding=encoding,this.options=options,this.beamSize=beamSize,this.nBest=nBest,
this.lengthPenalty=lengthPenalty,this.maxLength=maxLength,this.prefix=prefix,this.memory=model.memory,
this.suppressed=[model.special.pad,model.special.bos],!(nBest>=1&&nBest<=beamSize))throw new EngineError(
`nBest = ${nBest} must be from 1 to beamSize = ${beamSize}.`);if(beamSize+1+this.suppressed.length>=
model.vocabulary)throw new EngineError(`beamSize = ${beamSize} is too large for ${model.vocabulary} \
tokens.`);if(prefix.length>maxLength)throw new EngineError(`the prefix has ${prefix.length} tokens, \
but the longest output is ${maxLength}.`);this.scope=this.memory.scope();try{this.start()}catch(error){
throw this.close(),error}}start(){let{scope,model,beamSize,maxLength,prefix,encoding}=this,{bos,eos}=model.
special,{begin_beam,skip_prefix}=model.engine.exports,scores=this.prefill(),noPositions=this.options.
positions===!1;noPositions||model.positions.decoder.tableFor(maxLength+1);let divisors=Array.from({length:maxLength+
2},(_,count)=>lengthDivisor(count,this.lengthPenalty));this.beamOptions=scope.struct("BeamOptions",{
beam_size:beamSize,n_best:this.nBest,eos,signal_stride:noPositions?0:model.width,rotary_stride:noPositions?
0:model.headDim,divisors:scope.doubles(divisors)}),this.beam=scope.struct("Beam",{max_length:maxLength,
prefix_length:prefix.length,prefix:scope.ints(prefix),step:{...this.cache.stepPositions(prefix.length),
cache:this.store,memory:encoding.pointers,capacity:this.capacity,source_length:encoding.length,source_capacity:encoding.
length,self_heads:{weights:0,factors:this.cache.factors.decoder},cross_heads:{weights:0,factors:this.
cache.factors.cross}}});let begin=block=>Number(begin_beam(model.decoder,this.beamOptions,BigInt(bos),
this.beam,block));begin(scope.allocate(begin(0))),skip_prefix(this.beamOptions,this.beam,scope.floats(
scores));let perRow=beamSize+1;this.values=scope.allocate(beamSize*perRow*4),this.tokens=scope.allocate(
beamSize*perRow*8),this.best=scope.struct("BestTokens",{count:perRow,num_suppressed:this.suppressed.
length,suppressed:scope.longs(this.suppressed),values:this.values,tokens:this.tokens}),this.beams=scope.
ints([this.beam]),this.maxKeys=Math.max(maxLength+1,this.encoding.length),this.workspace=scope.allocate(
model.workspaceBytes(model.decoder,beamSize,this.maxKeys)),this.logits=scope.allocate(4*beamSize*model.
vocabulary)}prefill(){let{model,prefix,beamSize,maxLength,encoding}=this;if(this.capacity=prefix.length+
1+beamSize*Math.min(maxLength,encoding.length+CACHE_MARGIN),this.cache=new DecoderCache(model,encoding,
this.capacity,this.options),this.store=this.cache.store,!prefix.length)return[];let{logits}=this.cache.
append([model.special.bos,...prefix.slice(0,-1)],{allLogits:!0}),size=model.vocabulary,scores=prefix.
map((token,t)=>{let row=logits.subarray(t*size,(t+1)*size);return model.logProbabilities(row)[token]});
return this.recordPrefix(scores),scores}recordPrefix(scores){let total=0;this.prefix.forEach((token,t)=>{
total+=scores[t],this.options.onStep?.(prefixRecord(t,token,scores[t],total,this.beamSize))})}step(){
let{memory,beam}=this,before=this.options.onStep&&{rows:this.get("step.rows"),length:this.get("lengt\
h"),done:memory.doubles(this.get("best_scores"),1)[0]>-1/0};this.advance();let status=this.get("stat\
us");return before&&this.options.onStep?.(this.record(before,status)),status===memory.constant("BEAM\
_CACHE_FULL")&&this.enlargeCache(),memory.get("Beam",beam,"status")!==memory.constant("BEAM_ENDED")}advance(){
let{model}=this;model.engine.call("beam_steps",model.failure,model.decoder,this.beamOptions,this.beams,
1n,BigInt(this.maxKeys),this.workspace,this.logits,this.best,1)}get(path){return this.memory.get("Be\
am",this.beam,path)}enlargeCache(){let{model,scope}=this,enlarge=cache=>Number(model.engine.exports.
enlarge_cache(model.decoder,this.beamOptions,this.beam,cache)),store=scope.allocate(4*enlarge(0));enlarge(
store),this.cache.scope.release(this.store),scope.release(this.store),this.store=store}outputs(){let{
memory}=this;return Array.from({length:this.get("num_outputs")},(_,rank)=>{let output=this.get("outp\
uts")+rank*memory.sizeOf("Output"),read=name=>memory.get("Output",output,name),first=4*rank*(this.maxLength+
1),length=read("length");return{tokens:[...memory.ints(this.get("tokens")+first,length)],tokenScores:[
...memory.floats(this.get("token_scores")+first,length+read("ended"))],logProbability:read("total"),
score:read("score"),ended:read("ended")!==0}})}record({rows,length,done},status){let{memory,beamSize}=this,
{eos}=this.model.special,perRow=beamSize+1,count=Math.min(rows*perRow,2*beamSize),candidates=Array.from(
{length:count},(_,rank)=>{let candidate=this.get("candidates")+rank*memory.sizeOf("Candidate"),read=name=>memory.
get("Candidate",candidate,name);return{parent:read("row"),token:read("token"),value:read("log_prob"),
total:read("total")}}),likeliest2=array=>[...array].filter((_,i)=>i%perRow===0),closed=candidates[0].
total===-1/0&&!done||this.maxLength<=length,ends=candidates.map(({token,total})=>!closed&&token===eos&&
total>-1/0),kept=candidates.map((_,rank)=>rank).filter(rank=>!ends[rank]).slice(0,beamSize);return{length,
candidates,finished:ends.map((end,rank)=>end&&rank<beamSize),kept,closed,lastTokens:likeliest2(memory.
longs(this.tokens,rows*perRow)).map(Number),lastValues:likeliest2(memory.floats(this.values,rows*perRow)),
active:status!==memory.constant("BEAM_ENDED"),scores:[...memory.doubles(this.get("best_scores"),beamSize)]}}close(){
this.cache?.release(),this.scope.close()}},RecomputingSearch=class extends BeamSearch{prefill(){let{
model,prefix,beamSize,maxLength,encoding}=this;this.cache=new DecoderCache(model,encoding,maxLength+
1,this.options),this.store=this.cache.store,this.capacity=prefix.length+1+beamSize*(maxLength+1);let scores=prefix.
map((token,t)=>model.logProbabilities(this.prefixLogits(prefix.slice(0,t)))[token]);return this.recordPrefix(
scores),scores}advance(){let{model,memory,beamSize,suppressed}=this,[rows,length,perRow]=[this.get("\
step.rows"),this.get("length"),beamSize+1],{read_prefix}=model.engine.exports,prefix=this.get("token\
s");for(let row=0;row<rows;row++){read_prefix(this.beam,this.beamOptions,BigInt(length),BigInt(row),
prefix,0);let logits=this.prefixLogits([...memory.ints(prefix,length)]),best=bestTokens(model.logProbabilities(
logits),perRow,suppressed);memory.floats(this.values+4*row*perRow,perRow).set(best.map(({value})=>value)),
memory.longs(this.tokens+8*row*perRow,perRow).set(best.map(({token})=>BigInt(token)))}model.engine.call(
"extend_beam",model.failure,model.decoder,this.beamOptions,this.beam,this.best)}prefixLogits(prefix){
return this.cache.clear(),this.cache.append([this.model.special.bos,...prefix],{causal:!1}).logits}};
function prefixRecord(length,token,value,total,beamSize){return{length,candidates:[{parent:0,token,value,
total}],finished:[!1],kept:[0],closed:!1,lastTokens:[token],lastValues:[value],active:!0,scores:Array(
beamSize).fill(-1/0)}}function lengthDivisor(length,lengthPenalty){let power=1,root=Math.max(length,
1),whole=Math.floor(lengthPenalty),rest=lengthPenalty-whole;for(let square=root;whole>0;square*=square)
whole%2===1&&(power*=square),whole=Math.floor(whole/2);for(;rest>0;)root=Math.sqrt(root),rest*=2,rest>=
1&&(power*=root,rest-=1);return power}function makeOutput(tokens,tokenScores,ended,lengthPenalty){let logProbability=tokenScores.
reduce((sum,score)=>sum+score,0);return{tokens:ended?tokens.slice(0,-1):tokens,tokenScores,logProbability,
score:logProbability/lengthDivisor(tokenScores.length,lengthPenalty),ended}}function bestTokens(values,count,suppressed=[]){
let excluded=new Set(suppressed),best=[];for(let token=0;token<values.length;token++){let value=values[token];
if(best.length===count&&!(value>best[count-1].value)||excluded.has(token))continue;let rank=best.length===
count?count-1:best.length;for(;rank>0&&value>best[rank-1].value;rank--)best[rank]=best[rank-1];best[rank]=
{token,value}}return best}async function generateIds(model,context,options={}){let{sampling=null,sample=0,
maxTokens=256,onToken,pause,signal}=options,{unk,pad,bos,eos}=model.special,random=sampling&&makeRandom(
sampling.seed??1,sample,context),cache=new WindowCache(model,options),tokens=[],scores=[],ended=!1;try{
let logits=cache.prefill(context.slice(context.length-contextLength(context.length,model.window)));for(;;){
let values=model.logProbabilities(logits),token=pickToken(values,sampling,random,[unk,pad,bos]);if(token<
0||(ended=token===eos,!ended&&tokens.length>=maxTokens)||(tokens.push(token),scores.push(values[token]),
ended||onToken?.(token,values[token])))break;if(pause&&await pause(),signal?.aborted)throw new SearchCancelled(
"the text was cancelled");logits=cache.append(token)}return makeOutput(tokens,scores,ended,1)}finally{
cache.release()}}function contextLength(length,window){if(length<=window)return length;let step=windowStep(
window);return window-step+1+(length-window-1)%step}var windowStep=window=>Math.max(1,Math.floor(window/
2)),WindowCache=class{constructor(model,options){this.model=model,this.options=options,this.tokens=[],
this.cache=new DecoderCache(model,null,model.window,options)}prefill(tokens){return this.cache.clear(),
this.tokens=[...tokens],this.cache.append(this.tokens,{causal:this.options.causal}).logits}append(token){
let{window}=this.model;return this.tokens.length>=window?this.prefill([...this.tokens.slice(windowStep(
window)),token]):this.options.causal===!1?this.prefill([...this.tokens,token]):(this.tokens.push(token),
this.cache.append([token]).logits)}release(){this.cache.release()}};function makeScheduler(){if(typeof setImmediate=="function")return setImmediate;let{port1,port2}=new MessageChannel,
callback=()=>{};return port1.onmessage=()=>callback(),call=>{callback=call,port2.postMessage(0)}}function makePause(){
let schedule=makeScheduler(),lastPause=performance.now(),pending=null;return()=>{if(!(performance.now()-
lastPause<40))return pending??=new Promise(resolve=>schedule(()=>{lastPause=performance.now(),pending=
null,resolve()})),pending}}var RANGES=`
  oo 2 6 4 7 1 1 1 k 1 b1 1 12 2 1e 2 3 1 1j 8 r 4 6 b 7i 1 1o 2 2t e 1n 2 1d 2 f 1 s 2 1 1 b 5 v
  1 2 6 6k 1 8 2 2 2 m 1 7 1 1 3 4 2 9 2 2 2 4 8 1 4 2 1 5 2 p 2 3 1 6 4 2 2 m 1 7 1 2 1 2 1 2 2 1
  1 5 4 2 2 3 3 1 7 4 1 1 7 h a 3 1 9 1 3 1 m 1 7 1 2 1 5 2 a 1 3 1 3 2 1 f 4 2 c 7 7 1 3 1 8 2 2
  2 m 1 7 1 2 1 5 2 9 2 2 2 3 7 3 4 2 1 5 2 i a 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 c 4 5 3 3 1 4
  2 1 6 1 e l 5 d 1 3 1 n 1 g 2 9 1 3 1 4 7 2 1 3 2 1 2 4 2 a 7 m 1 3 1 n 1 a 1 5 2 9 1 3 1 4 7 2
  6 2 1 4 2 a 1 2 d d 1 3 1 1f 1 3 1 6 4 g 2 q 1 3 1 i 3 o 1 9 1 1 2 7 3 1 4 6 1 1 1 8 6 a 2 3 c
  1m 4 t 11 2 1 1 1 5 1 o 1 1 1 n 2 5 1 1 1 6 2 a 2 4 w 20 1 10 4 13 1 10 1 f 1 d 11 5i 1 1 5 1 2
  ah 1 4 2 7 1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1 1l 1 4 2 1v 2 w 3 q 6 2e 2 6 2 il 3 2h 7 m
  9 o 9 k c d 1 3 1 2 c 2m 2 a 6 a 6 q 6 2h 7 17 5 1y a v 1 c 4 c 4 1 3 16 2 5 b 18 4 q 6 b 3 1q 2
  1t 1 t 2 b 6 a 6 e 2 v 1d 25 3 1b 1 38 8 1o 3 f 3 1o 7 17 2 b 8 17 5 eu 2 6 2 12 2 6 2 8 1 1 1 1
  1 1 1 v 2 1h 1 f 1 e 2 6 1 j 2 3 1 9 1 2t 1 c 2 r 1 d 3 x f x f 3w 4 if p b l 1ec 2 w 1 9p 5 19
  1 1 5 1 2 1k 7 2 e o 9 7 1 7 1 7 1 7 1 7 1 7 1 7 1 7 1 3i y q 1 2h c 5y q c 4 1s 1 2e 2 2v 5 17
  1 2m 1 2c c 1b 1 mlp 3 1j 9 9o k 54 8 5n 5 2 1 1 1 5 o 1n 3 a 6 1k 8 1y 8 c 6 38 b u 3 26 1 b 4
  x 1 1j 9 e 2 a 2 2v o s a 6 2 6 2 6 9 7 1 7 1 1o 4 3i 2 a 6 8mc c n 4 1d 4 6su 2 2y 12 7 c 5 5 q
  1 5 1 1 1 2 1 2 1 3h g cd 2 1i 7 1 w 16 6 1f 1 j 1 4 4 5 1 3r 2 1 1 5a 3 6 2 6 2 6 2 3 3 7 1 7 a
  5 2 c 1 q 1 j 1 2 1 f 2 e y 3f 5 3 4 19 3 2g 1 d 3 1 1b 1a 3m t 3 1d f s 4 10 9 u 5 17 5 u 1 11
  4 e 16 4e 2 a 6 10 4 10 4 14 8 1g b c 1 f 1 7 1 2 1 b 1 f 1 7 1 2 1v 8n 9 m a 8 o 6 1 16 1 9 1x
  6 2 1 1 18 1 2 3 1 2 n 1 20 8 9 1c j 1 2 5 x 3 r 5 1 1s 1k 4 k 2 1e 1 2 5 8 1 3 1 t 2 3 4 a 7 9
  7 1s w 13 4 c 9 1i 3 t 2 r 5 q 7 4 c 7 28 21 1j 1f d 1f 7 1a 8 a 86 v 1 16 1 3 2 2 26 14 8 16 m
  q 12 s k n 9 26 4 10 9 1w a 1 2 p 7 a 6 1h 1 i 8 13 9 2o 1 k b i 1 18 1t 7 1 1 1 4 1 f 1 b 6 1n
  5 a 6 4 1 8 2 2 2 m 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 3 5 3v 2k 1 5 u 20 8 a 4m 1i 2 12 y
  1x b a 6 d j 1m 6 a 1i r 2 f 4 n 55 1o 2s 2b c 8 2 1 2 8 1 2 1 u 1 2 2 c 9 a 1y 8 2 1a 2 b r 20
  8 2b d 21 7b 9 1 19 1 e a t 3 w 2 m 1 e 21 7 1 2 1 18 3 1 1 2 1 9 8 a 6 6 1 2 1 11 1 2 1 6 7 a
  8m p 53 1 f 1e d pn 2u 33 1 5 b 5g 218 2r d tr 1 9 347 g7 6nt ft 7 v 1 a 4 29 1 a 6 u 2 6 a 1y a
  a 1 7 1 l 5 j j4 2j 2t 23 4 1l 7 h 1s 5 b 2 e 4qg 8 ye 16 9 6w7 4 1 7 1 2 1 83 19 3 h 4 8 b0 1s4
  2z 5 d 3 9 7 a 2 8 3mk 1a 2 n 9 38 1o 6u a 13 2 5e l 1y 4a k c 2f 9 p 3r 2d 1 1z 1 2 2 1 2 2 2 4
  1 c 1 1 1 7 1 1t 1 4 2 8 1 7 1 s 1 4 1 5 1 1 3 7 1 9g 2 84 2 ji f 5 1 f uo v 69 7 1 h 2 7 1 2 1
  5 5x 19 3 e 2 a 4 2 8w v h 1m 5 1 yo 7 1 4 1 2 1 f 1 5h 2 g 15 24 4 a 4 2 lt 1w 24 1p 5e 4 1 r 1
  2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 1 4 1
  4 1 1 1 a 1 h 5 3 1 5 1 h 1g 2 7i 18 4 2s c f 2 f 1 f 1 11 a 4u 1k t d 18 4 9 7 2 e 6 4a rc 5 g
  3 d 3 38 c 2h 7 c 4 1 f c 4 1k 8 a 6 14 8 u 2 2 26 9g c e 2 5 3 5 3 7 9 t 3 b 5 6 a a 6 8 8 7 9
  43 1 1j 11 a sm 2t4w e1oh 1 u 2o 3k 6o 1e6o 1eke 2 1eke 2
`;var WHITE="\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000",code=0,
RANGES_OF_NEW=RANGES.trim().split(/\s+/).map((length,index)=>{let first=String.fromCodePoint(code);return code+=
parseInt(length,36),index%2?`${first}-${String.fromCodePoint(code-1)}`:""}),NEW=new RegExp(`[${RANGES_OF_NEW.
join("")}]`,"gu"),BLANK_RUN=new RegExp(`[${WHITE}]+`,"u"),LEADING_BLANKS=new RegExp(`^[${WHITE}]+`,"\
u"),ONE_BLANK=new RegExp(`^[${WHITE}]$`,"u"),LETTER_OR_NUMBER=/^[\p{L}\p{N}]+$/u,DECIMAL_OR_DIGIT=new RegExp(
"^[\\p{Nd}\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u\
2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e\
60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]+$","u"),WIDE=new RegExp("^(?![\\u{1f1e6}-\\u\
{1f1ff}])[\\p{Emoji_Presentation}\\u1100-\\u115f\\u2329\\u232a\\u2e80-\\u303e\\u3041-\\u3247\\u3250-\\u4dbf\\u4e\
00-\\ua4c6\\ua960-\\ua97c\\uf900-\\ufaff\\ufe10-\\ufe19\\ufe30-\\ufe6b\\uff01-\\uff60\\uffe0-\\uffe6\\u{16fe0}-\\u{\
1b2fb}\\u{1f200}-\\u{1f265}\\u{20000}-\\u{3fffd}]$","u"),known=text=>text.replace(NEW,character=>character.
length>1?"\u{F0000}":"\uE000").replace(/[\u{20000}-\u{3ffff}]/gu,"\u{20000}");function onKnown(change,text){
let found=text.match(NEW);return found?change(text.replace(NEW,"\uFFFF")).replace(/\uffff/g,()=>found.
shift()??""):change(text)}var isBlank=character=>ONE_BLANK.test(character),hasText=text=>/[^\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u.
test(text),hasLetters=text=>new RegExp("(?!\\p{Default_Ignorable_Code_Point})\\p{L}","u").test(known(
text)),isAlphanumeric=text=>LETTER_OR_NUMBER.test(known(text)),isDigits=text=>DECIMAL_OR_DIGIT.test(
text),isUpper=text=>new RegExp("\\p{Uppercase}","u").test(text)&&!/[\p{Lowercase}\p{Lt}]/u.test(text),
isWide=character=>WIDE.test(known(character)),isCombining=character=>character==="\u0345"||!/[\u0f73\u0f75\u0f81]/.
test(character)&&!`\u0345${known(character)}`.normalize("NFD").startsWith("\u0345"),wellFormed=text=>text.
replace(new RegExp("\\p{Cs}","gu"),"\uFFFD"),splitBlanks=text=>text.split(BLANK_RUN).filter(Boolean),
stripStart=text=>text.replace(LEADING_BLANKS,"");function stripEnd(text){let end=text.length;for(;end&&
isBlank(text[end-1]);)end-=1;return text.slice(0,end)}var strip=text=>stripEnd(stripStart(text)),characterAt=(text,index)=>index<
text.length?String.fromCodePoint(text.codePointAt(index)??0):"",characterBefore=(text,index)=>{let pair=index>
1&&(text.codePointAt(index-2)??0)>65535;return text.slice(index-(pair?2:1),index)};function moveOffset(text,index,characters){
let moved=index;for(let remaining=characters;remaining>0&&moved<text.length;remaining-=1)moved+=characterAt(
text,moved).length;for(let remaining=characters;remaining<0&&moved>0;remaining+=1)moved-=characterBefore(
text,moved).length;return moved}function titleCase(character){let code2=character.codePointAt(0)??0;
if(code2>=4304&&code2<=4351)return character;if(code2>=452&&code2<=460)return String.fromCharCode(453+
3*Math.floor((code2-452)/3));if(code2>=497&&code2<=499)return"\u01F2";let upper=character.toUpperCase();
return/[ß\u0587\ufb00-\ufb06\ufb13-\ufb17]/.test(character)?upper[0]+upper.slice(1).toLowerCase():code2>=
8064&&code2<=8188&&upper.length>1&&upper.endsWith("\u0399")?`${upper.slice(0,-1)}\u0345`.normalize("\
NFC"):upper}function caseLocale(language){let base=language.split("-")[0];return["az","crh","gag","t\
r"].includes(base)?"tr":base==="lt"?"lt":""}var lowerCase=(text,language)=>onKnown(changed=>changed.
toLocaleLowerCase(caseLocale(language)||"en"),text),upperCase=(text,language)=>onKnown(changed=>changed.
toLocaleUpperCase(caseLocale(language)||"en"),text);function capitalize(text,language=""){let first=characterAt(
text,0);return caseLocale(language)?upperCase(first,language)+lowerCase(text.slice(first.length),language):
onKnown(changed=>{let start=characterAt(changed,0);return start&&titleCase(start)+changed.toLowerCase().
slice(start.toLowerCase().length)},text)}var CONTROL_CHARACTERS=new RegExp(`(?![${WHITE}])[\\p{Cc}\\ufeff]`,"gu"),NO_BREAK=/[\xa0\u202f]/g,SPACES=new RegExp(
`[${WHITE}]+`,"gu"),compose=text=>onKnown(known2=>known2.normalize("NFC"),wellFormed(text).replace(CONTROL_CHARACTERS,
"")),clean=text=>strip(compose(text)),normalize=text=>splitBlanks(compose(text)).join(" "),unify=text=>compose(
text).replace(/\r\n?/g,`
`),lower=text=>onKnown(known2=>known2.toLowerCase().normalize("NFC"),text),normalizeTarget=text=>clean(
text).replace(SPACES,run=>run.replace(NO_BREAK,"")?" ":run[0]);function sourceForm(text,{invisible,unspaced,
wide,eastAsian,eastAsianWide}){let bare=text.replace(invisible,""),joined=bare.search(unspaced)<0?bare.
replaceAll("\u200B",""):bare;return joined.replace(joined.search(eastAsian)<0?wide:eastAsianWide,run=>run.
normalize("NFKC")).replace(NO_BREAK," ")}var UTF8=new TextEncoder,STRICT_UTF8=new TextDecoder("utf-8",{fatal:!0,ignoreBOM:!0}),utf8Bytes=text=>UTF8.
encode(text);function decodeStrictUtf8(bytes){try{return STRICT_UTF8.decode(Uint8Array.from(bytes))}catch{
return null}}function brokenCharacters(bytes){let broken=[];if(decodeStrictUtf8(bytes)!==null)return broken;
for(let start=0;start<bytes.length;){let lead=bytes[start],length=lead<128?1:lead<224?2:lead<240?3:4;
if(decodeStrictUtf8(bytes.slice(start,start+length))!==null){start+=length;continue}let end=start+1;
for(;end<start+length&&end<bytes.length&&isBeginning(bytes.slice(start,end+1),length);)end+=1;broken.
push([start,end]),start=end}return broken}function isBeginning(bytes,length){let rest=new Array(length-
bytes.length);return decodeStrictUtf8([...bytes,...rest.fill(128)])!==null||decodeStrictUtf8([...bytes,
...rest.fill(191)])!==null}function decodeUtf8(bytes){let valid=decodeStrictUtf8(bytes);if(valid!==null)
return valid;let text="",start=0;for(let[first,last]of[...brokenCharacters(bytes),[bytes.length,bytes.
length]])text+=decodeStrictUtf8(bytes.slice(start,first)),start=last;return text}var bytePiece=byte=>`\
<0x${byte.toString(16).toUpperCase().padStart(2,"0")}>`;function fromBase64(text){let letters=atob(text),
bytes=new Uint8Array(letters.length);for(let index=0;index<letters.length;index+=1)bytes[index]=letters.
charCodeAt(index);return bytes}var UNK=0,PAD=1,BOS=2,EOS=3,SPECIALS=["<unk>","<pad>","<s>","</s>"],Tokenizer=class{size=0;letters;constructor({
kind,lowercase=!1,keepSpace=!1,marksBetween=1,side="",marks}){this.kind=kind,this.lowercase=lowercase,
this.keepSpace=keepSpace,this.marksBetween=marksBetween,this.side=side,this.marks=marks&&Object.fromEntries(
Object.entries(marks).map(([name,pattern])=>[name,new RegExp(pattern,"gu")]))}forSide(side){return Object.
assign(Object.create(Object.getPrototypeOf(this)),this,{side})}encode(){throw new Error("a subclass \
encodes")}decode(){throw new Error("a subclass decodes")}pieces(){throw new Error("a subclass has pi\
eces")}get knowsLetters(){return this.letters??=this.kind==="bytes"||this.pieces(Array.from({length:this.
size-SPECIALS.length},(_,i)=>SPECIALS.length+i)).some(piece=>!piece.startsWith("<0x")&&hasLetters(piece)),
this.letters}formed(text){return this.side==="source"&&this.marks?sourceForm(text,this.marks):text}prepare(text){
let normal=this.keepSpace?unify(text):this.side==="target"?normalizeTarget(text):normalize(this.formed(
text));return this.lowercase?lower(normal):normal}check(ids){let invalid=ids.find(id=>!Number.isInteger(
id)||id<0||id>=this.size);if(invalid!==void 0)throw new RangeError(`token id ${invalid} is outside t\
his vocabulary of ${this.size}`);return[...ids]}byteValues=new Map;wholeCharacters(ids,source=""){let values=this.
byteValues,whole=[],broken=0;if(!ids.some(id=>values.has(id)))return{whole:[...ids],broken};for(let start=0,
end;start<ids.length;start=end){for(end=start;end<ids.length&&values.has(ids[end]);)end+=1;let bytes=ids.
slice(start,end).flatMap(id=>values.get(id)??[]),kept=0;for(let[first,last]of brokenCharacters(bytes))
whole.push(...ids.slice(start+kept,start+first),...this.completed(bytes.slice(first,last),source)),kept=
last,broken+=1;for(whole.push(...ids.slice(start+kept,end));end<ids.length&&!values.has(ids[end]);end+=
1)whole.push(ids[end])}return{whole,broken}}placeholderIds=[];outputText(ids,source=""){return this.
decode(this.wholeCharacters(ids,source).whole)}completed(beginning,source){let found=[...new Set(source)].
filter(character=>beginning.every((byte,index)=>utf8Bytes(character)[index]===byte));if(found.length!==
1)return[];let ids=new Map([...this.byteValues].map(([id,byte])=>[byte,id]));return[...utf8Bytes(found[0])].
flatMap(byte=>ids.get(byte)??[])}textIds(ids){return this.check(ids).filter(id=>id===UNK||id>EOS)}decodeRuns(ids,decode){
let runs=[];for(let id of this.textIds(ids)){let last=runs.at(-1);last&&last[0]===UNK==(id===UNK)?last.
push(id):runs.push([id])}return runs.map(run=>run[0]===UNK?SPECIALS[UNK]:decode(run)).join(" ")}};function mergeSymbols(symbols,pairRank){let texts=[...symbols],next=texts.map((_,index)=>index+1),previous=texts.
map((_,index)=>index-1),heap=new PairHeap,add=(left,right)=>{if(left<0||right>=texts.length)return;let rank=pairRank(
texts[left],texts[right]);rank!==void 0&&heap.push({rank,left,right,length:texts[left].length+texts[right].
length})};for(let left=0;left<texts.length-1;left+=1)add(left,left+1);for(let pair=heap.pop();pair;pair=
heap.pop()){let{left,right,length}=pair;!texts[left]||!texts[right]||texts[left].length+texts[right].
length!==length||(texts[left]+=texts[right],texts[right]="",next[left]=next[right],next[right]<texts.
length&&(previous[next[right]]=left),add(previous[left],left),add(left,next[left]))}return texts.filter(
Boolean)}var PairHeap=class{pairs=[];push(pair){let{pairs}=this,index=pairs.length;for(let parent;index&&
comesBefore(pair,pairs[parent=index-1>>1]);index=parent)pairs[index]=pairs[parent];pairs[index]=pair}pop(){
let{pairs}=this,first=pairs[0],last=pairs.pop();if(!last||!pairs.length)return first;let index=0;for(let child=1;child<
pairs.length&&(child+1<pairs.length&&comesBefore(pairs[child+1],pairs[child])&&(child+=1),!!comesBefore(
pairs[child],last));child=2*index+1)pairs[index]=pairs[child],index=child;return pairs[index]=last,first}},
comesBefore=(a,b)=>a.rank<b.rank||a.rank===b.rank&&a.left<b.left;var UNICODE_WHITE="\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000",
UNICODE_BLANKS=new RegExp(`[${UNICODE_WHITE}]`,"gu"),PretrainedTokenizer=class extends Tokenizer{constructor(description){
super(description),this.symbols=[...SPECIALS,...description.symbols],this.size=this.symbols.length,this.
unusedRows=new Set(description.rows);let added=new Set(description.added);this.ids=new Map,this.symbols.
forEach((symbol,id)=>{id>=SPECIALS.length&&!this.unusedRows.has(id)&&!added.has(id)&&this.ids.set(symbol,
id)})}decode(ids){return this.decodeRuns(ids,run=>{let used=run.filter(id=>!this.unusedRows.has(id));
return this.decodeTokens(used.map(id=>this.symbols[id]))})}pieces(ids){return this.check(ids).map(id=>id<
SPECIALS.length||this.unusedRows.has(id)?this.symbols[id]:this.displayText(this.symbols[id]))}decodeTokens(){
throw new Error("a subclass joins tokens")}displayText(symbol){return symbol}},CHINESE=new RegExp("[\
\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2\
f800}-\\u{2fa1f}]","gu"),BERT_WORDS=new RegExp(`[\\p{P}$+<=>^\`|~]|[^\\p{P}$+<=>^\`|~${UNICODE_WHITE}\
]+`,"gu"),CLEAN_UPS=[[" .","."],[" ?","?"],[" !","!"],[" ,",","],[" ' ","'"],[" n't","n't"],[" 'm","\
'm"],[" do not"," don't"],[" 's","'s"],[" 've","'ve"],[" 're","'re"]],WordPieceTokenizer=class extends PretrainedTokenizer{constructor(description){
super(description),this.settings=description.wordpiece}encode(text){return this.words(text).flatMap(
word=>this.wordPieces(word))}words(text){return this.normalizeText(wellFormed(text)).match(BERT_WORDS)??
[]}normalizeText(text){let{cleanText,splitChinese,stripAccents,lowerText}=this.settings,normal=text;
return cleanText&&(normal=normal.replace(/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu,"").replace(
UNICODE_BLANKS," ")),splitChinese&&(normal=normal.replace(CHINESE," $& ")),stripAccents&&(normal=normal.
normalize("NFD").replace(new RegExp("\\p{Mn}","gu"),"")),lowerText?Array.from(normal,character=>character.
toLowerCase()).join(""):normal}wordPieces(word){let{longestWord,unknown,prefix}=this.settings,characters=[
...word];if(characters.length>longestWord)return[unknown];let ids=[];for(let start=0;start<characters.
length;){let end=characters.length,id;for(;end>start&&(id=this.ids.get((start?prefix:"")+characters.
slice(start,end).join("")),id===void 0);end-=1);if(id===void 0)return[unknown];ids.push(id),start=end}
return ids}decodeTokens(tokens){let{prefix,cleanUp}=this.settings;return tokens.map((token,index)=>{
let text=index?token.startsWith(prefix)?token.slice(prefix.length):` ${token}`:token;return cleanUp?
CLEAN_UPS.reduce((clean2,[old,shorter])=>clean2.replaceAll(old,shorter),text):text}).join("")}},BYTE_LEVEL_WORDS=new RegExp(
`'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${UNICODE_WHITE}\\p{L}\\p{N}]+|[${UNICODE_WHITE}]+(\
?![^${UNICODE_WHITE}])|[${UNICODE_WHITE}]+`,"gu"),BYTE_CHARACTERS=[];for(let byte=0,others=0;byte<256;byte+=
1){let printable=byte>32&&byte<127||byte>160&&byte!==173;BYTE_CHARACTERS.push(String.fromCharCode(printable?
byte:256+others++))}var BYTE_OF_CHARACTER=new Map(BYTE_CHARACTERS.map((character,byte)=>[character,byte]));
function bytesOf(symbol){let bytes=[...symbol].flatMap(character=>BYTE_OF_CHARACTER.get(character)??
[]);return bytes.length===[...symbol].length?bytes:null}var ByteLevelTokenizer=class extends PretrainedTokenizer{constructor(description){
super(description),this.addBlank=description.bytelevel.addBlank,this.ranks=new Map(description.bytelevel.
merges.map((pair,rank)=>[pair,rank]))}encode(text){let valid=wellFormed(text),prepared=this.addBlank&&
valid&&!valid.startsWith(" ")?` ${valid}`:valid,rank=(left,right)=>this.ranks.get(`${left} ${right}`);
return(prepared.match(BYTE_LEVEL_WORDS)??[]).flatMap(word=>{let known2=Array.from(utf8Bytes(word),byte=>BYTE_CHARACTERS[byte]).
filter(symbol=>this.ids.has(symbol));return mergeSymbols(known2,rank).flatMap(symbol=>this.ids.get(symbol)??
[])})}decodeTokens(tokens){return decodeUtf8(tokens.flatMap(token=>bytesOf(token)??[...utf8Bytes(token)]))}displayText(symbol){
let bytes=bytesOf(symbol);return bytes?decodeStrictUtf8(bytes)?.replaceAll(" ","\u2581")??bytes.map(
bytePiece).join(""):symbol}};var labelOf=unit=>unit&2147483903,hasLeaf=unit=>unit>>>8&1,offsetOf=unit=>unit>>>10<<((unit&512)>>>6),
valueOf=unit=>unit&2147483647,Charsmap=class{constructor(base64){let bytes=fromBase64(base64),view=new DataView(
bytes.buffer),size=view.getUint32(0,!0);this.units=Uint32Array.from({length:size>>>2},(_,index)=>view.
getUint32(4+4*index,!0)),this.replacements=bytes.subarray(4+size)}longestRule(text,index){let{units}=this,
node=offsetOf(units[0]),end=index,match=null;for(;end<text.length;){let character=characterAt(text,end);
end+=character.length;for(let byte of utf8Bytes(character)){node^=byte;let unit=units[node];if(labelOf(
unit)!==byte)return this.replacement(match);node^=offsetOf(unit),hasLeaf(unit)&&(match=[valueOf(units[node]),
end-index])}}return this.replacement(match)}replacement(match){return match&&[decodeUtf8(this.replacements.
subarray(match[0],this.replacements.indexOf(0,match[0]))),match[1]]}};var SPACE_SIGN="\u2581",UNKNOWN_PENALTY=10,SYMBOL_BONUS=.1,SentencePieceModel=class{constructor({algorithm,
pieces,scores,unknown,unknownText,control,bytes,user,dummyPrefix,removeExtraBlanks,charsmap}){this.algorithm=
algorithm,this.pieces=pieces,this.unknown=unknown,this.unknownText=unknownText,this.dummyPrefix=dummyPrefix,
this.removeExtraBlanks=removeExtraBlanks,this.scores=new Float32Array(fromBase64(scores).buffer),this.
control=new Set(control),this.placeholderIds=control.filter(id=>/^<keep-\d>$/.test(pieces[id])).sort(
(a,b)=>pieces[a].localeCompare(pieces[b])),this.byteIds=bytes,this.byteOf=new Map(bytes.map((id,byte)=>[
id,byte])),this.user=new Set(user),this.userSymbols=user.map(id=>pieces[id]).sort((a,b)=>b.length-a.
length),this.charsmap=charsmap?new Charsmap(charsmap):null,this.ids=new Map,pieces.forEach((piece,id)=>{
id!==unknown&&!this.control.has(id)&&!this.byteOf.has(id)&&this.ids.set(piece,id)}),this.longest=0;let lowest=1/0;
for(let[piece,id]of this.ids)this.longest=Math.max(this.longest,piece.length),this.user.has(id)||(lowest=
Math.min(lowest,this.scores[id]));this.unknownScore=Math.fround(lowest-UNKNOWN_PENALTY)}encode(text,substitute=""){
let normal=this.normalizeText(text),result=[];for(let pair of this.algorithm==="bpe"?this.mergePieces(
normal):this.likeliestPieces(normal)){let[piece,id]=pair,last=result.at(-1);if(id!==this.unknown)result.
push(pair);else if(this.byteIds.length)for(let byte of utf8Bytes(piece===substitute?SPACE_SIGN:piece))
result.push([bytePiece(byte),this.byteIds[byte]]);else last?.[1]===this.unknown?last[0]+=piece:result.
push(pair)}return result}userSymbolAt(text,index){return this.userSymbols.find(symbol=>text.startsWith(
symbol,index))}normalizeText(text){let result="",afterBlank=this.removeExtraBlanks;for(let index=0;index<
text.length;){let[normal,length]=this.normalizePrefix(text,index),part=afterBlank?normal.replace(/^ +/,
""):normal;index+=length,part&&(afterBlank=this.removeExtraBlanks&&part.endsWith(" ")),result+=part.
replaceAll(" ",SPACE_SIGN)}if(this.removeExtraBlanks)for(;result.endsWith(SPACE_SIGN);)result=result.
slice(0,-1);return(this.removeExtraBlanks?!result:!text)?"":(this.dummyPrefix?SPACE_SIGN:"")+result}normalizePrefix(text,index){
let symbol=this.userSymbolAt(text,index);if(symbol)return[symbol,symbol.length];let replacement=this.
charsmap?.longestRule(text,index);if(replacement)return replacement;let character=characterAt(text,index);
return[character,character.length]}mergePieces(text){let symbols=[],frozen=this.user;for(let index=0,
symbol;index<text.length;index+=symbol.length)symbol=this.userSymbolAt(text,index)??characterAt(text,
index),symbols.push(symbol);return mergeSymbols(symbols,(left,right)=>{let id=this.ids.get(left+right),
isFrozen=frozen.size&&[left,right].some(symbol=>frozen.has(this.ids.get(symbol)??-1));return id===void 0||
isFrozen?void 0:-this.scores[id]}).map(piece=>[piece,this.ids.get(piece)??this.unknown])}likeliestPieces(text){
let best=new Float32Array(text.length+1),starts=new Int32Array(text.length+1).fill(-1),ids=new Int32Array(
text.length+1),update=(start,end,id,score)=>{let total=Math.fround(best[start]+score);(starts[end]<0||
total>best[end])&&([best[end],starts[end],ids[end]]=[total,start,id])};for(let start=0,step;start<text.
length;start+=step){step=characterAt(text,start).length;let hasSingle=!1;for(let end=start+step;end<=
Math.min(text.length,start+this.longest);end+=1){let piece=text.slice(start,end),id=this.ids.get(piece);
id!==void 0&&(update(start,end,id,this.scoreOf(id,piece)),hasSingle||=end===start+step)}hasSingle||update(
start,start+step,this.unknown,this.unknownScore)}let pieces=[];for(let end=text.length;end>0;end=starts[end])
pieces.push([text.slice(starts[end],end),ids[end]]);return pieces.reverse()}scoreOf(id,piece){return this.
user.has(id)?SYMBOL_BONUS*(utf8Bytes(piece).length-1):this.scores[id]}decode(pieces){let text="",atStart=!0,
blankRemoved=!1,bytes=[],flush=()=>{text+=decodeUtf8(bytes),bytes=[]};for(let piece of pieces){let id=typeof piece==
"number"?piece:this.ids.get(piece)??this.reservedId(piece),byte=this.byteOf.get(id);if(byte!==void 0){
bytes.push(byte);continue}flush(),(blankRemoved||text)&&(atStart=!1),blankRemoved=!1;let symbol=typeof piece==
"number"?this.pieces[id]:piece;if(this.control.has(id))continue;if(id===this.unknown){text+=symbol===
this.pieces[id]?this.unknownText:symbol;continue}let removeBlank=atStart&&(this.dummyPrefix||this.removeExtraBlanks)&&
symbol.startsWith(SPACE_SIGN);blankRemoved=removeBlank&&!this.removeExtraBlanks,text+=(removeBlank?symbol.
slice(1):symbol).replaceAll(SPACE_SIGN," ")}return flush(),text}reservedId(piece){return this.byteIds.
find(id=>this.pieces[id]===piece)??[...this.control].find(id=>this.pieces[id]===piece)??this.unknown}};var SubwordTokenizer=class extends Tokenizer{constructor(description){super(description),this.model=
new SentencePieceModel(description.model),this.size=this.model.pieces.length,this.byteValues=this.model.
byteOf,this.placeholderIds=this.model.placeholderIds}encode(text){let prepared=this.prepare(text),substitute=prepared.
includes(SPACE_SIGN)?this.unusedCharacter(prepared):"";return this.model.encode(substitute?prepared.
replaceAll(SPACE_SIGN,substitute):prepared,substitute).map(([,id])=>id)}decode(ids){return this.model.
decode(this.check(ids))}pieces(ids){return this.check(ids).map(id=>this.model.pieces[id])}unusedCharacter(text){
for(let code2=983040;;code2+=1){let character=String.fromCodePoint(code2);if(!text.includes(character)&&
!this.model.ids.has(character))return character}}},MarianTokenizer=class extends Tokenizer{constructor(description){
super(description),this.model=new SentencePieceModel(description.model),this.symbols=[...SPECIALS,...description.
symbols],this.ids=new Map(description.symbols.map((symbol,index)=>[symbol,index+SPECIALS.length])),this.
size=this.symbols.length,this.model.byteIds.forEach((id,byte)=>{let own=this.ids.get(this.model.pieces[id]);
own!==void 0&&this.byteValues.set(own,byte)})}encode(text){let prepared=this.prepare(text),end=prepared.
startsWith(">>")?prepared.indexOf("<<"):-1,[code2,rest]=end<0?[[],prepared]:[[prepared.slice(0,end+2)],
prepared.slice(end+2)];return[...code2,...this.model.encode(rest).map(([piece])=>piece)].map(piece=>this.
ids.get(piece)??UNK)}decode(ids){let text=this.decodeRuns(ids,run=>this.model.decode(run.map(id=>this.
symbols[id])));return strip(text.replaceAll(SPACE_SIGN," "))}pieces(ids){return this.check(ids).map(
id=>this.symbols[id])}};var SymbolTokenizer=class extends Tokenizer{constructor(description,separator){super(description),this.
separator=separator,this.symbols=[...SPECIALS,...description.symbols],this.ids=new Map(description.symbols.
map((symbol,index)=>[symbol,index+SPECIALS.length])),this.size=this.symbols.length}decode(ids){return this.
textIds(ids).map(id=>this.symbols[id]).join(this.separator)}pieces(ids){return this.check(ids).map(id=>this.
symbols[id].replaceAll(" ","\u2581"))}},CharacterTokenizer=class extends SymbolTokenizer{constructor(description){
super(description,"")}encode(text){return Array.from(this.prepare(text),character=>this.ids.get(character)??
UNK)}},ByteTokenizer=class extends Tokenizer{size=SPECIALS.length+256;byteValues=new Map(Array.from(
{length:256},(_,byte)=>[byte+SPECIALS.length,byte]));encode(text){return Array.from(utf8Bytes(this.prepare(
text)),byte=>byte+SPECIALS.length)}decode(ids){return decodeUtf8(this.textIds(ids).flatMap(id=>id===
UNK?[...utf8Bytes(SPECIALS[UNK])]:[id-SPECIALS.length]))}pieces(ids){return this.check(ids).map(id=>SPECIALS[id]??
bytePiece(id-SPECIALS.length))}};var LONG_WORD=new RegExp(`([^${WHITE}]{200})(?=[^${WHITE}])`,"gu"),SEPARATOR="\0",WordTokenizer=class extends SymbolTokenizer{constructor(description){
super(description," ");let{prefix,suffix,infix,url,special}=description.rules;this.prefix=new RegExp(
prefix,"u"),this.suffix=new RegExp(suffix,"u"),this.url=new RegExp(url,"u"),this.infix=new RegExp(infix,
"gu"),this.special=new Map(Object.entries(special)),this.sequences=new Set,this.maxSequence=0;for(let word of this.
special.keys()){if(![this.prefix,this.suffix].some(pattern=>pattern.test(word))&&word.search(this.infix)<
0&&!word.includes(" "))continue;let words=this.splitText(word,new Map).map(token=>token.text);this.sequences.
add(words.join(SEPARATOR)),this.maxSequence=Math.max(this.maxSequence,words.length)}}encode(text){return this.
words(text).filter(word=>this.ids.has(word)||splitBlanks(word).length).map(word=>this.ids.get(word)??
UNK)}words(text){let tokens=this.splitText(clean(this.formed(text)).replace(LONG_WORD,"$1 "),this.special),
words=this.joinSpecial(tokens);return this.lowercase?words.map(lower):words}splitText(text,special){
let tokens=[],start=0,inBlank=text!==""&&isBlank(text[0]),add=end=>{start<end&&tokens.push(...this.splitWord(
text.slice(start,end),special).map(word=>({text:word,blank:!1})))};for(let index=0;index<text.length;index+=
1)isBlank(text[index])!==inBlank&&(add(index),text[index]===" "&&(tokens[tokens.length-1].blank=!0),
start=text[index]===" "?index+1:index,inBlank=!inBlank);return add(text.length),tokens}splitWord(word,special){
let prefixes=[],suffixes=[],rest=word;for(let length=0;rest&&rest.length!==length&&!special.has(rest);){
length=rest.length;let before=this.prefix.exec(rest)?.[0].length??0;if(before&&special.has(rest.slice(
before))){prefixes.push(rest.slice(0,before)),rest=rest.slice(before);break}let after=this.suffix.exec(
rest.slice(before))?.[0].length??0;if(after&&special.has(rest.slice(0,-after))){suffixes.push(rest.slice(
-after)),rest=rest.slice(0,-after);break}before&&prefixes.push(rest.slice(0,before)),after&&suffixes.
push(rest.slice(-after)),rest=rest.slice(before,after?-after:void 0)}return[...prefixes,...this.splitInfixes(
rest,special),...suffixes.reverse()]}splitInfixes(word,special){if(!word)return[];let whole=special.
get(word);if(whole)return whole;let tokens=[],start=0;for(let match of this.url.test(word)?[]:word.matchAll(
this.infix))match.index&&(tokens.push(word.slice(start,match.index),match[0]),start=match.index+match[0].
length);return[...tokens,word.slice(start)].filter(Boolean)}joinSpecial(tokens){let spans=[];for(let start=0;start<
tokens.length;start+=1){let sequence="";for(let end=start+1;end<=Math.min(tokens.length,start+this.maxSequence);end+=
1)sequence+=(sequence&&SEPARATOR)+tokens[end-1].text,this.sequences.has(sequence)&&spans.push([start,
end])}spans.sort((a,b)=>b[1]-b[0]-(a[1]-a[0])||a[0]-b[0]);let seen=new Set,ends=new Map;for(let[start,
end]of spans){!seen.has(start)&&!seen.has(end-1)&&ends.set(start,end);for(let index=start;index<end;index+=
1)seen.add(index)}let words=[];for(let index=0;index<tokens.length;){let end=ends.get(index)??index+
1,span=tokens.slice(index,end),text=span.map((token,i)=>token.text+(token.blank&&i<span.length-1?" ":
"")).join("");words.push(...ends.has(index)&&this.special.get(text)||span.map(token=>token.text)),index=
end}return words}};function loadTokenizer(description){switch(description.kind){case"bpe":case"unigram":return new SubwordTokenizer(
description);case"words":return new WordTokenizer(description);case"characters":return new CharacterTokenizer(
description);case"bytes":return new ByteTokenizer(description);case"marian":return new MarianTokenizer(
description);case"huggingface":return description.wordpiece?new WordPieceTokenizer(description):new ByteLevelTokenizer(
description);default:throw new RangeError(`there is no tokenizer of the kind "${description.kind}"`)}}var TOLERANCE=1e-6;function wordIndices(tokenizer,ids,source="",decode=tokenizer.decode.bind(tokenizer)){
let texts=ids.map((_,end)=>decode(tokenizer.wholeCharacters(ids.slice(0,end+1),source).whole)),counts=texts.
map(text=>splitBlanks(text).length);for(let end=ids.length-2;end>=0;end-=1)tokenizer.byteValues.has(
ids[end])&&texts[end]===(texts[end-1]??"")&&(counts[end]=counts[end+1]);return counts.map(count=>Math.
max(0,Math.min(count,counts[counts.length-1])-1))}function wordAlignment(attention,sourceWords,targetWords){
if(!sourceWords.length||!targetWords.length)return[];let merged=Array.from({length:targetWords[targetWords.
length-1]+1},()=>new Float64Array(sourceWords[sourceWords.length-1]+1));return targetWords.forEach((target,t)=>sourceWords.
forEach((source,s)=>{merged[target][source]+=attention[t][s]})),[...new Set(targetWords)].sort((a,b)=>a-
b).map(target=>{let highest=merged[target].reduce((a,b)=>Math.max(a,b));return[merged[target].findIndex(
weight=>weight>=highest-TOLERANCE),target]})}var pharaoh=links=>links.map(([source,target])=>`${source}\
-${target}`).join(" ");function nextWord(before,text){let continued=before&&text&&!isBlank(before.slice(
-1))&&!isBlank(text[0]);return splitBlanks(before).length-(continued?1:0)}function copiedLinks(source,target,copied){
let sourceStart=nextWord(source,copied),targetStart=nextWord(target,copied);return splitBlanks(copied).
map((_,word)=>[sourceStart+word,targetStart+word])}function lineAlignment(line,outputs,{source,target},longest){
let links=[],end=0,before="";return line.parts.forEach((part,index)=>{let{tokens,attention}=outputs[index],
text=part.outputText(target,tokens),gap=line.between(index,[...before].at(-1)??"",[...text][0]??"");
links.push(...copiedLinks(line.text.slice(0,end),before,gap)),before+=gap;let firstSource=nextWord(line.
text.slice(0,part.start),part.text),firstTarget=nextWord(before,text),sourceWords=wordIndices(source,
part.ids.slice(0,longest),"",ids=>part.decode(source,ids)),targetWords=wordIndices(target,tokens,part.
text,ids=>part.decode(target,ids)),numbers=splitBlanks(part.text).flatMap((word,number)=>source.prepare(
word)?[number]:[]);for(let[from,to]of wordAlignment(attention,sourceWords,targetWords)){let number=numbers[Math.
min(from,numbers.length-1)]??0;links.push([firstSource+number,firstTarget+to])}end=part.end,before+=
text}),[...links,...copiedLinks(line.text.slice(0,end),before,line.text.slice(end))]}function packArray(shape,numbers){let low=0,high=1;for(let number of numbers)number<low&&(low=number),
number>high&&(high=number);let bytes=new Uint8Array(2*numbers.length),view=new DataView(bytes.buffer);
return numbers.forEach((number,i)=>view.setUint16(2*i,Math.round((number-low)/(high-low)*65535),!0)),
{shape,low,high,uint16:toBase64(bytes)}}function toBase64(bytes){let text="";for(let i=0;i<bytes.length;i+=
8192)text+=String.fromCharCode(...bytes.subarray(i,i+8192));return btoa(text)}function logSoftmax(logits,temperature=1){
let largest=-1/0,sum=0;for(let logit of logits)logit>largest&&(largest=logit);for(let logit of logits)
sum+=Math.exp((logit-largest)/temperature);let normalizer=Math.log(sum);return Float64Array.from(logits,
logit=>(logit-largest)/temperature-normalizer)}var SPECIAL_IDS=[PAD,BOS,EOS],MAX_SHOWN_TOKENS=256,ALTERNATIVES=5,NEIGHBOURS=5,withEndSymbol=({tokens,
ended})=>ended?[...tokens,EOS]:[...tokens],RequestError=class extends Error{};function checkLength(tokens,name,longest,allowEmpty=!1){
let limit=Math.min(longest,MAX_SHOWN_TOKENS);if(tokens>limit)throw new RequestError(`the ${name} has\
 ${tokens} tokens; ${limit} can be looked at. Give one sentence.`);if(!tokens&&!allowEmpty)throw new RequestError(
`the ${name} is empty.`)}function tokensOf(tokenizer,ids,source=""){let plain=ids.filter(id=>!SPECIAL_IDS.
includes(id)),words=wordIndices(tokenizer,plain,source),pieces=tokenizer.pieces(ids),next=0;return ids.
map((id,i)=>({id,piece:pieces[i],word:SPECIAL_IDS.includes(id)?null:words[next++]}))}function textOf(tokenizer,ids,text,language,source=""){
let plain=ids.filter(id=>!SPECIAL_IDS.includes(id));return{text,language,tokens:tokensOf(tokenizer,ids,
source),words:splitBlanks(tokenizer.outputText(plain,source))}}function withoutEachWord(tokenizer,ids){
let words=tokensOf(tokenizer,ids).map(token=>token.word);return[...new Set(words.filter(word=>word!==
null))].sort((a,b)=>a-b).map(index=>({word:index,ids:ids.filter((_,i)=>words[i]!==index)}))}function alternativesOf(logProbabilities,tokenizer,count=ALTERNATIVES,excluded=-1){
let ids=bestTokens(logProbabilities,count,[PAD,BOS,excluded]).filter(({value})=>value>-1/0).map(({token})=>token),
pieces=tokenizer.pieces(ids);return ids.map((id,i)=>({id,piece:pieces[i],log_probability:logProbabilities[id],
probability:Math.exp(logProbabilities[id])}))}function predictionsOf(logits,ids,tokenizer,given,temperature=1){
let size=logits.length/ids.length,pieces=tokenizer.pieces(ids);return ids.map((id,position)=>{let values=logSoftmax(
logits.subarray(position*size,(position+1)*size),temperature),logProbability=values[id],rank=1,entropy=0;
for(let value of values)value>logProbability&&(rank+=1),value>-1/0&&(entropy-=Math.exp(value)*value);
return{id,piece:pieces[position],log_probability:logProbability,probability:Math.exp(logProbability),
rank,entropy,alternatives:alternativesOf(values,tokenizer,ALTERNATIVES,id),forced:position<given}})}
var maskOf=(rows,columns,causal)=>Float32Array.from({length:rows*columns},(_,i)=>causal&&i%columns>Math.
floor(i/columns)?0:1);function meanHeads({heads,layers},weights,rows,columns){let layer=layers.decoder-
1;return Array.from({length:rows},(_,t)=>Float64Array.from({length:columns},(__,s)=>{let sum=0;for(let head=0;head<
heads;head+=1)sum+=weights[((layer*heads+head)*rows+t)*columns+s];return sum/heads}))}function attentionOf(kind,weights,[
layers,heads,rows,columns],causal){let mask=maskOf(rows,columns,causal),entropy=Float32Array.from({length:layers*
heads},(_,head)=>{let sum=0;for(let i=head*rows*columns;i<(head+1)*rows*columns;i+=1)weights[i]>0&&(sum-=
weights[i]*Math.log(weights[i]));return sum/rows});return{kind,weights:packArray([layers,heads,rows,
columns],weights),mask:packArray([rows,columns],mask),entropy:packArray([layers,heads],entropy)}}function neighboursOf(rows,width,ids,tokenizer){
let size=rows.length/width,norms=Float32Array.from({length:size},(_,v)=>{let sum=0;for(let i=v*width;i<
(v+1)*width;i+=1)sum+=rows[i]*rows[i];return Math.max(Math.sqrt(sum),1e-12)});return[...new Set(ids.
filter(id=>!SPECIAL_IDS.includes(id)))].map(id=>{let cosines=Float32Array.from({length:size},(_,v)=>{
let sum=0;for(let i=0;i<width;i+=1)sum+=rows[id*width+i]*rows[v*width+i];return sum/(norms[id]*norms[v])}),
near=bestTokens(cosines,NEIGHBOURS,[...SPECIAL_IDS,id]).map(({token})=>token),pieces=tokenizer.pieces(
near);return{id,piece:tokenizer.pieces([id])[0],near:near.map((other,i)=>({id:other,piece:pieces[i],
cosine:cosines[other]}))}})}function headSteps(model,{kind,layer,head},source,target,engine){let{queries,
keys,values}=model.headVectors({kind,layer,head},source,target,engine),{headDim}=model,[rows,columns]=[
queries.length/headDim,keys.length/headDim],mask=maskOf(rows,columns,kind==="decoder"&&engine.causal),
scores=new Float32Array(rows*columns),weights=new Float32Array(rows*columns),outputs=new Float32Array(
rows*headDim);for(let row=0;row<rows;row+=1){let first=row*columns;for(let column=0;column<columns;column+=
1){let sum=0;for(let e=0;e<headDim;e+=1)sum+=queries[row*headDim+e]*keys[column*headDim+e];scores[first+
column]=sum/Math.sqrt(headDim)}let masked=scores.subarray(first,first+columns).map((score,column)=>mask[first+
column]?score:-1/0);weights.set(logSoftmax(masked).map(Math.exp),first);for(let column=0;column<columns;column+=
1)for(let e=0;e<headDim;e+=1)outputs[row*headDim+e]+=weights[first+column]*values[column*headDim+e]}
let[vectors,pairs]=[{queries,keys,values,outputs},{scores,mask,weights}];return{kind,layer,head,...Object.
fromEntries(Object.entries(vectors).map(([name,array])=>[name,packArray([array.length/headDim,headDim],
array)])),...Object.fromEntries(Object.entries(pairs).map(([name,array])=>[name,packArray([rows,columns],
array)]))}}function checkHead({task,layers,heads},{kind,layer=0,head=0}){let kinds={translation:["en\
coder","decoder","cross"],classification:["encoder"],"language-modeling":["decoder"]}[task];if(!kinds.
includes(kind))throw new RequestError(`this model has no attention of kind "${kind}"; it has ${kinds.
join(", ")}.`);let count=layers[kind==="encoder"?"encoder":"decoder"],isIndex=(number,size)=>Number.
isInteger(number)&&number>=0&&number<size;if(!isIndex(layer,count)||!isIndex(head,heads))throw new RequestError(
`there is no head ${kind}.${layer}.${head}: this model has layers 0 to ${count-1} and heads 0 to ${heads-
1}.`);return{kind,layer,head}}function engineChanges(model,{heads=[],mask=!0,positions=!0}={}){let headFactors={};
for(let name of heads){let[given,...numbers]=name.split("."),{kind,layer,head}=checkHead(model,{kind:given,
layer:Number(numbers[0]),head:Number(numbers[1])});headFactors[kind]??=new Float32Array(model.layers[kind===
"encoder"?"encoder":"decoder"]*model.heads).fill(1),headFactors[kind][layer*model.heads+head]=0}if(!mask&&
!model.layers.decoder)throw new RequestError("this model has no causal mask: each of its tokens atte\
nds to all others.");return{...heads.length&&{headFactors},positions,causal:mask}}var MIN_LOG_PROBABILITY=Math.log(22250738585072014e-324),likeliest=logProbabilities=>logProbabilities.
indexOf(Math.max(...logProbabilities)),PageClassifier=class{constructor(model,tokenizer,settings){this.
model=model,this.tokenizer=tokenizer,this.settings=settings}forward(ids,options){let input=[BOS,...ids,
EOS],{logits,attention}=this.model.classify(input,{...options,types:this.types(input)});return{logProbabilities:logSoftmax(
logits),attention}}types(input){if(this.model.settings.token_types<=1)return null;let first=input.indexOf(
EOS);return input.map((_,i)=>i>first?1:0)}encode(text){let{tokenizer,settings}=this;return(settings.
texts===2?text.split("	").slice(0,2):[text]).flatMap((part,i)=>[...i?Array(tokenizer.marksBetween).fill(
EOS):[],...tokenizer.encode(part)])}classify(text){let{logProbabilities}=this.forward(this.encode(text).
slice(0,this.settings.longest),{});return this.settings.labels.map((label,i)=>({label,probability:Math.
exp(logProbabilities[i])})).sort((a,b)=>b.probability-a.probability)}checkedIds(text){let ids=this.encode(
text);return checkLength(ids.filter(id=>id!==EOS).length,"text",this.settings.longest),ids}head(text,{
changes,...options}){let name=checkHead(this.model,options),input=[BOS,...this.checkedIds(text),EOS];
return headSteps(this.model,name,input,[],{...engineChanges(this.model,changes),types:this.types(input)})}async inspect(text,{
occlusion=!0,changes,...control}={}){let{model,tokenizer,settings}=this,ids=this.checkedIds(text),engine=engineChanges(
model,changes),{logProbabilities,attention}=this.forward(ids,{...engine,attention:!0}),best=likeliest(
logProbabilities),input=[BOS,...ids,EOS];return{kind:"classification",run:settings.run,model:settings.
facts,text:textOf(tokenizer,input,text,settings.language),attention:[attentionOf("encoder",attention.
encoder,[model.layers.encoder,model.heads,input.length,input.length],!1)],label:settings.labels[best],
classes:settings.labels.map((label,i)=>({label,probability:Math.exp(logProbabilities[i])})),pooling:model.
settings.pooling,occlusion:occlusion?await this.leaveOutWords(ids,logProbabilities,best,engine,control):
null,neighbours:neighboursOf(model.embeddingRows("encoder"),model.width,input,tokenizer)}}async leaveOutWords(ids,baseline,label,engine,{
pause,signal}){let{labels}=this.settings,words=[];for(let{word,ids:rest}of withoutEachWord(this.tokenizer,
ids)){if(await pause?.(),signal?.aborted)throw new SearchCancelled("the inspection was cancelled");let{
logProbabilities}=this.forward(rest,engine),drops=labels.map((_,i)=>Math.max(baseline[i],MIN_LOG_PROBABILITY)-
Math.max(logProbabilities[i],MIN_LOG_PROBABILITY));words.push({word,drop:drops[label],drops,output:labels[likeliest(
logProbabilities)]})}return{columns:labels,words}}};var SHOWN_TOKENS=20,PageGenerator=class{constructor(model,tokenizer,settings){this.model=model,this.
tokenizer=tokenizer,this.settings=settings}context(text){let{first,lines}=this.settings,ids=this.tokenizer.
encode(text);return lines||!ids.length?[first,...ids]:ids}async generate(text,{sampling=null,maxTokens=100,
changes,pause,signal}={}){let output=await generateIds(this.model,this.context(text),{sampling,maxTokens,
pause,signal,...engineChanges(this.model,changes)});return this.tokenizer.decode(output.tokens)}next(text,{
sampling={},changes}={}){let{model,tokenizer}=this,context=this.context(text),inputs=context.slice(context.
length-contextLength(context.length,model.window)),{logits}=model.forward(null,inputs,engineChanges(
model,changes)),values=model.logProbabilities(logits.subarray((inputs.length-1)*model.vocabulary)),suppressed=new Set(
[UNK,PAD,BOS]),best=bestTokens(values,SHOWN_TOKENS,suppressed),weights=samplingWeights(values,best[0].
value,sampling,suppressed),total=weights.reduce((sum,weight)=>sum+weight,0),prompt=tokenizer.decode(
context);return{tokens:best.map(({token,value})=>{let longer=tokenizer.decode([...context,token]);return{
id:token,piece:tokenizer.pieces([token])[0],text:longer.startsWith(prompt)?longer.slice(prompt.length):
"",probability:Math.exp(value),share:weights[token]/total}}),kept:weights.filter(weight=>weight>0).length}}async continueText(text,{
prefix=[],max_tokens:maxTokens=0,pause,signal},engine){let given=[...this.tokenizer.encode(text),...prefix],
ids=[...given];if(maxTokens&&given.at(-1)!==EOS){let output=await generateIds(this.model,[...this.context(
text),...prefix],{maxTokens,pause,signal,...engine});ids.push(...output.tokens,...output.ended?[EOS]:
[])}return checkLength(ids.length,"text",this.model.window-1),{ids,given:given.length}}async head(text,{
changes,...options}){let name=checkHead(this.model,options),engine=engineChanges(this.model,changes),
{ids}=await this.continueText(text,options,engine);return headSteps(this.model,name,null,[this.settings.
first,...ids],engine)}async inspect(text,{temperature=1,changes,...options}={}){let{model,tokenizer,
settings}=this,engine=engineChanges(model,changes),{ids,given}=await this.continueText(text,options,
engine),inputs=[settings.first,...ids],{logits,attention}=model.forward(null,inputs,{...engine,attention:!0}),
size=model.vocabulary,predictions=predictionsOf(logits.subarray(0,ids.length*size),ids,tokenizer,given,
temperature);return{kind:"language-modeling",run:settings.run,model:settings.facts,text:textOf(tokenizer,
ids,tokenizer.decode(ids),settings.language),inputs:tokensOf(tokenizer,inputs.slice(0,-1)),attention:[
attentionOf("decoder",attention.decoder,[model.layers.decoder,model.heads,inputs.length,inputs.length],
engine.causal)],predictions,next:alternativesOf(logSoftmax(logits.subarray(ids.length*size)),tokenizer),
log_probability:predictions.reduce((sum,prediction)=>sum+prediction.log_probability,0),prefix:given,
neighbours:neighboursOf(model.embeddingRows("decoder"),model.width,ids,tokenizer)}}};var FEW=.1,SourceModel=class{constructor({mean,limits,several,...lists}){let[counts,pairs]=[lists.counts,
lists.pairs].map(numbers=>numbers.split(" ").map(Number));this.counts=counts,this.mean=mean,this.limits=
limits,this.singleSentences=several<FEW,this.total=counts.reduce((sum,count)=>sum+count,counts.length),
this.pairs=new Map,this.after=new Float64Array(counts.length),this.kinds=new Float64Array(counts.length);
for(let at=0;at<pairs.length;at+=3){let[first,second,count]=pairs.slice(at,at+3);this.pairs.set(first*
counts.length+second,count),this.after[first]+=count,this.kinds[first]+=1}}probability(first,second){
let alone=(this.counts[second]+1)/this.total,kinds=this.kinds[first];return kinds?((this.pairs.get(first*
this.counts.length+second)??0)+kinds*alone)/(this.after[first]+kinds):alone}surprise(ids){return[...ids,
EOS].reduce((nats,id,at)=>nats-Math.log(this.probability(at?ids[at-1]:BOS,id)),0)}isUnlike(rows){let nats=rows.
reduce((sum,ids)=>sum+this.surprise(ids),0),pieces=rows.reduce((sum,ids)=>sum+ids.length+1,0),measures=[
nats/pieces,(nats-this.mean*pieces)/Math.sqrt(pieces)];return pieces>0&&measures.some((value,at)=>value>
this.limits[at])}},UnlikeTraining=class{constructor({settings:{sources}}){this.sources=sources&&new SourceModel(
sources)}get splitting(){return this.sources?.singleSentences?{split:"sentences"}:{}}warnings({line}){
return{"unlike-training":!!this.sources?.isUnlike(line.rows)}}};var LEVELS=["low","medium","high"],SIGNS_OF_FAILURE=["unlike-training","repetition","length-ratio","\
broken-character"],ConfidenceModel=class{constructor({bias,weights,usual_ratio:usualRatio,limits}){this.
bias=bias,this.weights=weights,this.usualRatio=usualRatio,this.limits=limits}estimate(tokenScores,rows,sources,warnings,truncated){
let count=tokenScores.length,pieces=rows.reduce((sum,row)=>sum+row.length+1,0),total=values=>values.
reduce((sum,value2)=>sum+value2,0),surprise=sources?total(rows.map(row=>sources.surprise(row)))/pieces:
0,ratio=Math.abs(Math.log(count/pieces)-this.usualRatio),terms=[total(tokenScores)/count,total(tokenScores.
map(Math.exp))/count,surprise,ratio],value=this.bias+total(terms.map((term,index)=>this.weights[index]*
term));return(truncated||warnings.some(name=>SIGNS_OF_FAILURE.includes(name)))&&(value=Math.min(value,
this.limits[0]/2)),Math.min(1,Math.max(0,value))}level(confidence){return LEVELS[this.limits.filter(
limit=>confidence>limit).length]}},Confidence=class{constructor(translator){let{confidence}=translator.
settings;this.translator=translator,this.model=confidence&&new ConfidenceModel(confidence)}fields(translation,{
line}){if(!this.model||!line.parts.length)return{confidence:null,confidence_level:null};let training=this.
translator.stages.find(stage=>stage instanceof UnlikeTraining),confidence=this.model.estimate(translation.
hypotheses[0].token_scores,line.rows,training?.sources,translation.warnings,translation.truncated);return{
confidence,confidence_level:this.model.level(confidence)}}};var Direction=class{constructor({prefix}){this.prefix=prefix}before(draft){let forced={prefix:this.prefix,
skip:this.prefix.length};return{...draft,options:{...draft.options,...forced}}}};function settingsByName(settings,name){
let found=settings.directions?.find(({run})=>run===name);return found?{...settings,...found,directions:null}:
settings}function settingsByLanguages(settings,source,target){let trained=settings.directions??[settings],
fitting=trained.filter(direction=>[direction.source,""].includes(source)&&[direction.target,""].includes(
target));if(fitting.length!==1){let names=trained.map(direction=>`${direction.source}-${direction.target}`).
join(", ");throw new RangeError(`${source||"any"} to ${target||"any"} is not one of the directions ${names}\
.`)}return settingsByName(settings,fitting[0].run)}var WIDE_MARKS="\u3002\uFF01\uFF1F\uFF61\uFF0E",MARKS=new RegExp("(?:\u2026|(?![\\u{10000}-\\u{10ffff}])\\p{\
Sentence_Terminal})+","gu"),CLOSING_MARKS=`"'\u201D\u2019\xBB\xAB\u201C\u2018\u203A\u2039)]}\u300D\u300F\uFF09\u3011\u300B\u3009\uFF3D\uFF5D`,
OPENING_MARKS=`"'\u201C\u201E\u201A\u201D\u2018\u2019\xAB\xBB\u2039\u203A([{\u300C\u300E\uFF08\u3010\u300A\u3008\uFF3B\xBF\xA1-\u2013\u2014*\u2022`,
UNSPACED_END=/[。！？｡．、，；：]["'”’»«“‘›‹)\]}」』）】》〉］｝]*$/u,
LINE_ENDS=/[\n\r\v\f\x85\u2028\u2029]/g,CONTINUATIONS="\u3068\u3063\u3066\u306F\u304C\u3092\u3082\u306B\u306E\u3067\u3084\u3001",
LAST_WORD=new RegExp(`[^${WHITE}(\\["'\u201C\u201E\xAB\xBB-]+$`,"u"),MAX_WORD=40,ABBREVIATIONS=new Set(
"mr mrs ms dr prof st mt gen col lt sgt capt rev hon sen rep gov pres hr fr frl dipl ing bzw sog vgl\
 ca z.b d.h u.a z.t v.a o.g u.u i.d.r inkl exkl zzgl ggf evtl gem geb gest hg hrsg jhd mio mrd vs cf\
 approx dept est e.g i.e al resp".split(" ")),NUMBER_ABBREVIATIONS=new Set("no nos nr vol vols ch p \
pp sec eq art fig figs bd abb tab abs kap s str tel jan feb mar apr jun jul aug sep sept oct okt nov\
 dec dez".split(" ")),ORDINAL_DOT=new Set("de da nb nn no fi et cs sk sl hr bs sr pl hu lv tr is lb".
split(" ")),DATE=new RegExp(`\\p{Nd}\\.[${WHITE}]?\\p{Nd}{1,2}$`,"u"),INITIAL=/^(?:[\p{L}\p{Nl}\p{No}]\.)*[\p{L}\p{Nl}\p{No}]$/u,
NO_INITIAL=["a.m","p.m"],AFTER_LETTER=new RegExp(`(?<![\\p{L}\\p{N}])[\\p{L}\\p{Nl}\\p{No}]\\.[${WHITE}\
][\\p{L}\\p{Nl}\\p{No}]$`,"u"),BEFORE_LETTER=new RegExp(`^\\.[${WHITE}](?:[\\p{L}\\p{Nl}\\p{No}]|Chr)\\.`,
"u"),ENUMERATION=new RegExp("^(?:\\p{Nd}{1,3}|[a-zA-Z])$","u"),lineSpans=text=>spansBetween(text,LINE_ENDS).
flatMap(span=>trimmedSpan(text,span));function sentenceSpans(text,language=""){let ordinals=ORDINAL_DOT.
has(language.split("-")[0]),seen=known(text);return spansBetween(seen,LINE_ENDS).flatMap(([start,end])=>sentencesOfLine(
seen,start,end,ordinals))}function sentenceCase(text,language){let result="",end=0;for(let[start,stop]of sentenceSpans(
text,language))result+=text.slice(end,start)+capitalize(text.slice(start,stop),language),end=stop;return result+
text.slice(end)}function spansBetween(text,separator){let spans=[],start=0;for(let match of text.matchAll(
separator))spans.push([start,match.index]),start=match.index+match[0].length;return[...spans,[start,
text.length]]}function trimmedSpan(text,[start,end]){let first=skipBlanks(text,start,end);if(first===
end)return[];let last=end;for(;isBlank(text[last-1]);)last-=1;return[[first,last]]}function skipBlanks(text,start,end){
let index=start;for(;index<end&&isBlank(text[index]);)index+=1;return index}function sentencesOfLine(text,start,end,ordinals){
let spans=[],first=start;for(let match of text.slice(start,end).matchAll(MARKS)){let mark=start+match.
index,marks=match[0],closers=mark+marks.length,cut=skipClosingMarks(text,closers,end),isWideMark=WIDE_MARKS.
includes(marks.slice(-1));if(cut<end&&!isBlank(text[cut])&&!isWideMark)continue;let after=skipBlanks(
text,cut,end);if(after===end)break;let following=firstCharacter(text,after,end);(isWideMark?!(cut>closers&&
after===cut&&CONTINUATIONS.includes(text[cut])||marks==="\uFF0E"&&isDigits(characterAt(text,cut))):beginsSentence(
following)&&!(marks==="."&&isAbbreviation(text,first,mark,following,ordinals)))&&(spans.push(...trimmedSpan(
text,[first,cut])),first=after)}return[...spans,...trimmedSpan(text,[first,end])]}function skipClosingMarks(text,start,end){
let index=start;for(;index<end;)if(CLOSING_MARKS.includes(text[index]))index+=1;else if(isBlank(text[index])&&
index+1<end&&text[index+1]==="\xBB"&&(index+2===end||isBlank(text[index+2])))index+=2;else break;return index}
function firstCharacter(text,start,end){let index=start;for(let remaining=8;remaining&&index<end;remaining-=
1){let character=characterAt(text,index);if(!OPENING_MARKS.includes(character)&&!isBlank(character))
return character;index+=character.length}return""}var beginsSentence=character=>isAlphanumeric(character)&&
(!new RegExp("\\p{Lowercase}","u").test(character)||character===capitalize(character));function isAbbreviation(text,first,dot,following,ordinals){
let from=Math.max(first,moveOffset(text,dot,-MAX_WORD)),before=text.slice(from,dot),match=LAST_WORD.
exec(before);if(!match)return!1;let word=match[0],lowerCase2=word.toLowerCase();return from+match.index===
first&&ENUMERATION.test(word)?!0:isDigits(word)?DATE.test(before)||isDigits(following)||ordinals&&[...word].
length<=2:ABBREVIATIONS.has(lowerCase2)||NUMBER_ABBREVIATIONS.has(lowerCase2)&&isDigits(following)||
new RegExp("^\\p{Lowercase}$","u").test(word)&&(AFTER_LETTER.test(before)||BEFORE_LETTER.test(text.slice(
dot,dot+6)))?!0:INITIAL.test(word)&&(isUpper(word)||word.includes("."))&&!NO_INITIAL.includes(lowerCase2)}
var CLAUSES=new RegExp(`(?<=[,;:\u060C\u061B])[${WHITE}]+|(?<=[\u3001\uFF0C\uFF1B\uFF1A])|(?<![${WHITE}\
,;:\u060C\u061B])[${WHITE}]+(?=[\u2013\u2014-][${WHITE}])`,"gu"),BLANKS=new RegExp(`[${WHITE}]+`,"gu");
function piecesWithin(text,span,limit,count){return count(text.slice(...span))<=limit?[span]:packUnits(
divideSpan(text,span,limit,count,[CLAUSES,BLANKS]),limit).map(unit=>unit.span)}function packUnits(units,limit){
let total=units.reduce((sum,unit)=>sum+unit.tokens,0),target=total/Math.max(1,Math.ceil(total/limit)),
pieces=[];for(let{span,tokens}of units){let last=pieces.at(-1)??{span,tokens:limit},larger=last.tokens+
tokens+1;larger<=limit&&larger-target<=target-last.tokens?pieces[pieces.length-1]={span:[last.span[0],
span[1]],tokens:larger}:pieces.push({span,tokens})}return pieces}function divideSpan(text,span,limit,count,separators){
if(!separators.length)return halveSpan(text,span,limit,count);let[start,end]=span;return spansBetween(
text.slice(start,end),separators[0]).map(([first,last])=>[start+first,start+last]).flatMap(part=>trimmedSpan(
text,part)).flatMap(part=>{let tokens=count(text.slice(...part));return tokens<=limit?[{span:part,tokens}]:
packUnits(divideSpan(text,part,limit,count,separators.slice(1)),limit)})}function halveSpan(text,[start,
end],limit,count){let word=text.slice(start,end),tokens=count(word),length=[...word].length;if(tokens<=
limit||length===1)return[{span:[start,end],tokens}];let middle=characterStart(text,moveOffset(text,start,
Math.floor(length/2)),end);return[...halveSpan(text,[start,middle],limit,count),...halveSpan(text,[middle,
end],limit,count)]}function characterStart(text,index,end){let later=index;for(let remaining=8;remaining&&
later<end;remaining-=1){let character=characterAt(text,later);if(!isCombining(character))return later;
later+=character.length}return index}var CODE=/^(`{3,}|~{3,})[^`]*$/u,LONGEST_END=8,Part=class{constructor(start,text,ids,capitals=!1){this.
start=start,this.text=text,this.ids=ids,this.capitals=capitals}get end(){return this.start+this.text.
length}decode(tokenizer,tokens){return tokenizer.decode(tokens)}outputText(tokenizer,tokens){return this.
decode(tokenizer,tokenizer.wholeCharacters(tokens,this.text).whole)}},Line=class{constructor({text,parts,
cutSentences=0,target=""}){this.text=text,this.parts=parts,this.cutSentences=cutSentences,this.target=
target}get rows(){return this.parts.map(({ids})=>ids)}join(outputs){let joined="",last="";return outputs.
forEach((output,index)=>{let cased=this.parts[index].capitals?upperCase(output,this.target):output;joined+=
this.between(index,last,characterAt(cased,0))+cased,cased&&(last=characterBefore(cased,cased.length))}),
joined+this.text.slice(this.parts.at(-1)?.end??0)}between(index,last,first){let start=index?this.parts[index-
1].end:0,end=this.parts[index].start;return this.text.slice(start,end)||blankBetween(this.text.slice(
Math.max(0,start-LONGEST_END),start),last,first)}};function blankBetween(before,last,first){let wide=[
last,first].some(character=>isWide(character));return UNSPACED_END.test(before)&&!wide&&last&&first?
" ":""}var Splitter=class{constructor({tokenizer,language,split="auto",trainedLength,longest,spansToTranslate=line=>[
[0,line.length]],lowerCapitals=!1,target=""}){this.tokenizer=tokenizer,this.language=language,this.split=
split,this.lowerCapitals=lowerCapitals,this.target=target,this.spansToTranslate=spansToTranslate,this.
limit=Math.min(trainedLength,longest)}line(text){let sentences=this.stretches(text).flatMap(span=>this.
sentences(text,span));return new Line({text,parts:sentences.flat().filter(part=>part.ids.length&&this.
translates(part.text)),cutSentences:sentences.filter(pieces=>pieces.length>1).length,target:this.target})}part(text,[
start,end]){let own=text.slice(start,end);return new Part(start,own,this.encode(own),this.inCapitals(
own))}sentences(text,[start,end]){let whole=this.part(text,[start,end]);return this.fits(whole.ids)?
[[whole]]:sentenceSpans(whole.text,this.language).map(span=>{let sentence=this.part(text,[start+span[0],
start+span[1]]);if(sentence.ids.length<=this.limit)return[sentence];let count=piece=>this.encode(piece).
length;return piecesWithin(whole.text,span,this.limit,count).map(([first,last])=>this.part(text,[start+
first,start+last]))})}encode(text){return this.tokenizer.encode(this.inCapitals(text)?sentenceCase(text,
this.language):text)}fits(ids){return this.split==="none"||this.split==="auto"&&ids.length<=this.limit}inCapitals(text){
let letters=this.lowerCapitals?known(text).match(new RegExp("\\p{L}","gu"))??[]:[];return letters.length>
1&&letters.every(letter=>new RegExp("\\p{Uppercase}","u").test(letter))}stretches(text){let lines=this.
translatedLines(text);return this.tokenizer.knowsLetters?lines.flatMap(([start,end])=>this.spansToTranslate(
text.slice(start,end)).map(([first,last])=>[start+first,start+last])):lines}translatedLines(text){return outsideCode(
text).filter(span=>this.translates(text.slice(...span)))}units(text){return this.translatedLines(text).
flatMap(([start,end])=>{let line=text.slice(start,end);return this.fits(this.encode(line))?[[start,end]]:
sentenceSpans(line,this.language).map(([first,last])=>[start+first,start+last])})}translates(text){return hasLetters(
text)||hasText(text)&&!this.tokenizer.knowsLetters}};function outsideCode(text){let outside=[],held=[],
mark="";for(let span of lineSpans(text)){let line=text.slice(...span),begin=CODE.exec(line);mark&&line.
startsWith(mark)&&[...line].every(character=>character===mark[0])?[held,mark]=[[],""]:mark?held.push(
span):begin?[held,mark]=[[span],begin[1]]:outside.push(span)}return[...outside,...held]}var BEFORE="([{<\"'\u201E\u201C\u201A\u2018\xAB\u2039\xBB\u203A\u300C\u300E\uFF08\u3010\xBF\xA1*_~`|=",
AFTER=new RegExp(`[^\\p{L}\\p{N}_${WHITE}<{@$%]*`,"uy"),BRANCH=/,[^{}\\]*\{|\}[^{}\\]*[{}]/u,ORDERED=/^(?:[<[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]]))/u,
NO_BLANK_AFTER="([{\xAB\u201E\u201C\u201A\u2018\xBF\xA1",NO_BLANK_BEFORE=".,;:!?\u2026)]}\xBB\u201D\u2019\u3002\u3001\uFF0C\uFF01\uFF1F",
WIDE_BEAM=10,LiteralKinds=class _LiteralKinds{constructor(kinds){this.kinds=kinds.map(({pattern,needs})=>({
pattern,needs:needs&&new RegExp(needs,"u")}));let layout=kinds.filter(kind=>kind.layout);this.layout=
layout.length===kinds.length?this:new _LiteralKinds(layout),this.patterns=new Map}patternFor(text){let joined=this.
kinds.filter(({needs})=>!needs||needs.test(text)).map(({pattern})=>pattern).join("|"),found=this.patterns.
get(joined)??new RegExp(joined,"gu");return this.patterns.set(joined,found),found}find(text){return Array.
from(text.matchAll(this.patternFor(text)),match=>[match.index,match.index+match[0].length])}sentences(text,[
lineStart,lineEnd]){let line=text.slice(lineStart,lineEnd),literals=this.find(line);return(literals.
length?this.layout.spansToTranslate(line):[]).flatMap(([start,end])=>{let spans=[];for(let[first,last]of literals){
if(first>=end||start>=last)continue;let joined=spans.length&&!hasLetters(line.slice(start+spans[spans.
length-1][1],first));spans.push([joined?(spans.pop()??[0])[0]:first-start,last-start])}if(!spans.length||
spans[0][0]<0||spans[spans.length-1][1]>end-start)return[];let sentence={start:lineStart+start,text:line.
slice(start,end),literals:spans};return!isMessage(sentence)&&hasLetters(textsBeside(sentence).join(""))?
[sentence]:[]})}spansToTranslate(text){let spans=[],start=0;for(let[literal,after]of[...this.find(text),
[text.length,text.length]]){start&&!isBlank(text[start-1])&&(AFTER.lastIndex=start,start=Math.min(literal,
start+(AFTER.exec(known(text))?.[0].length??0)));let end=literal;for(;literal<text.length&&!isBlank(
text[literal])&&end>start&&BEFORE.includes(text[end-1]);)end-=1;let part=text.slice(start,end);if(hasLetters(
part)){let first=start+part.length-stripStart(part).length;spans.push([first,first+strip(part).length])}
start=after}return spans}},isMessage=({text,literals})=>literals.map(span=>text.slice(...span)).some(
literal=>literal.split("{").length!==literal.split("}").length&&BRANCH.test(literal));function textsBeside({
text,literals}){let borders=[0,...literals.flat(),text.length];return Array.from({length:literals.length+
1},(_,index)=>text.slice(borders[2*index],borders[2*index+1]))}var SentenceWithPlaceholders=class extends Part{constructor({
start,text,literals},ids,capitals){super(start,text,ids,capitals),this.literals=literals}isComplete(tokenizer,tokens){
let{numbers}=splitAtPlaceholders(tokenizer,tokens),found=this.literals.some(([start])=>ORDERED.test(
this.text.slice(start)))?numbers:[...numbers].sort((a,b)=>a-b);return found.length===this.literals.length&&
found.every((number,index)=>number===index)}decode(tokenizer,tokens){let{runs,numbers}=splitAtPlaceholders(
tokenizer,tokens),[first,...others]=runs.map(run=>tokenizer.decode(run)),text=first;return numbers.forEach(
(number,index)=>{let[start,end]=this.literals[number],after=others[index],tag=this.text[end-1]===">";
text&&(text+=blankBeside(characterBefore(this.text,start),characterBefore(text,text.length),NO_BLANK_AFTER,
tag)),text+=this.text.slice(start,end),after&&(text+=blankBeside(characterAt(this.text,end),characterAt(
after,0),NO_BLANK_BEFORE,tag)+after)}),text}};function withPlaceholders(line,splitter,kinds){let sentences=splitter.
translatedLines(line.text).flatMap(span=>kinds.sentences(line.text,span)).flatMap(sentence=>sentencesWithin(
sentence,splitter)),{parts}=line;for(let sentence of sentences){let ids=idsWithPlaceholders(sentence,
splitter.tokenizer),letters=textsBeside(sentence).join("");if(!ids||ids.length>splitter.limit||splitter.
inCapitals(letters))continue;let whole=new SentenceWithPlaceholders(sentence,ids,splitter.inCapitals(
sentence.text));parts=[...parts.filter(part=>part.end<=whole.start||whole.end<=part.start),whole]}return new Line(
{...line,parts:[...parts].sort((a,b)=>a.start-b.start)})}function sentencesWithin(whole,splitter){let{
start,text,literals}=whole,ids=idsWithPlaceholders(whole,splitter.tokenizer);if(ids&&splitter.fits(ids))
return[whole];let starts=sentenceSpans(text,splitter.language).map(([first])=>first).filter(at=>!literals.
some(([first,last])=>first<at&&at<last));return starts.map((first,index)=>{let last=first+strip(text.
slice(first,starts[index+1])).length,own=literals.filter(([from,to])=>first<=from&&to<=last);return{
start:start+first,text:text.slice(first,last),literals:own.map(([from,to])=>[from-first,to-first])}}).
filter(part=>part.literals.length&&hasLetters(textsBeside(part).join("")))}function idsWithPlaceholders(sentence,tokenizer){
return sentence.literals.length>tokenizer.placeholderIds.length?null:textsBeside(sentence).flatMap((text,index)=>[
...index?[tokenizer.placeholderIds[index-1]]:[],...tokenizer.encode(text)])}function splitAtPlaceholders({
placeholderIds},tokens){let runs=[[]],numbers=[];for(let token of tokens)placeholderIds.includes(token)?
(numbers.push(placeholderIds.indexOf(token)),runs.push([])):runs[runs.length-1].push(token);return{runs,
numbers}}function blankBeside(source,output,noBlank,tag){let wide=isWide(source)||source>="\uAC00"&&
source<="\uD7A3";return source&&!isBlank(source)&&(tag||!wide)&&(isAlphanumeric(source)||!isAlphanumeric(
output))||noBlank.includes(output)?"":" "}var Placeholders=class{constructor(translator){this.translator=
translator,this.kinds=new LiteralKinds(translator.settings.literals)}get splitting(){return{spansToTranslate:line=>this.
kinds.spansToTranslate(line)}}before(draft){let{tokenizers,splitter}=this.translator,{source,target}=tokenizers;
return!source.placeholderIds.length||!target.placeholderIds.length?draft:{...draft,line:withPlaceholders(
draft.line,splitter,this.kinds),cut:draft}}accepts(part,{tokens}){let{target}=this.translator.tokenizers;
return!(part instanceof SentenceWithPlaceholders)||part.isComplete(target,tokens)}change(draft){let{
options,cut}=draft,size=Math.max(WIDE_BEAM,options.beamSize??0),wide={...options,beamSize:size,nBest:size};
return cut&&options.nBest===size?cut:{...draft,options:wide}}};var OutputChecks=class{constructor({tokenizers:{target}}){this.tokenizer=target}warnings({line,outputs}){
let best=outputs.map(([first])=>first),pairs=line.rows.map((ids,index)=>[ids,best[index].tokens]);return{
"sentence-cut":line.cutSentences>0,repetition:pairs.some(([source,output])=>repeatsItself(source,output)),
"length-ratio":pairs.some(([source,output])=>unusualLength(source.length,output.length)),"broken-cha\
racter":best.some(({tokens})=>this.tokenizer.wholeCharacters(tokens).broken>0)}}};function maxRepetitions(tokens){
let most=1;for(let period=1;period<=Math.min(16,Math.floor(tokens.length/2));period+=1){let run=0;for(let index=period;index<
tokens.length;index+=1)run=tokens[index]===tokens[index-period]?run+1:0,run+period>=8&&(most=Math.max(
most,Math.floor(run/period)+1))}return most}function repeatsItself(source,output){let repetitions=maxRepetitions(
output);return repetitions>=4&&repetitions>maxRepetitions(source)+1}var unusualLength=(source,output)=>Math.
max(source,output)>3*Math.min(source,output)+10;var BeamRecorder=class{constructor({beamSize,lengthPenalty,eos,piece}){this.beamSize=beamSize,this.lengthPenalty=
lengthPenalty,this.eos=eos,this.piece=piece,this.nodes=[],this.open=[null],this.steps=0,this.stop="l\
imit",this.lowest=[]}step(record){if(this.steps+=1,record.closed){this.close(record);return}let{candidates,
kept,finished}=record,keptTotals=kept.map(rank=>candidates[rank].total).filter(total=>total>-1/0),lowestKept=keptTotals.
length?Math.min(...keptTotals):null,numberOfRank=new Map;candidates.forEach(({parent,token,value,total},rank)=>{
if(total===-1/0)return;let state="kept",threshold=null;finished[rank]?state="finished":kept.includes(
rank)||([state,threshold]=["pruned",lowestKept]),token===this.eos&&!finished[rank]&&([state,threshold]=
["late-end",candidates[this.beamSize-1].total]),numberOfRank.set(rank,this.add({parent:this.open[parent],
token,value,total,rank:rank+1,state,threshold}))}),this.open=kept.map(rank=>numberOfRank.get(rank)??
null);let totals=[...numberOfRank.keys()].map(rank=>candidates[rank].total);this.lowest.push(totals.
length?Math.min(...totals):-1/0),record.active||this.stopEarly(record)}add({parent,token,value,total,
rank,state,threshold}){let number=this.nodes.length,depth=parent==null?0:this.nodes[parent].step+1;return this.
nodes.push({number,parent:parent??null,step:depth,id:token,piece:this.piece(token),log_probability:value,
total,score:total/lengthDivisor(depth+1,this.lengthPenalty),rank,state,threshold,best:!1}),number}close({
lastTokens,lastValues}){this.open.forEach((number,row)=>{if(number===null&&row)return;let total=number===
null?0:this.nodes[number].total;lastTokens[row]===this.eos&&lastValues[row]>-1/0?this.add({parent:number,
token:this.eos,value:lastValues[row],total:total+lastValues[row],rank:row+1,state:"finished",threshold:null}):
number!==null&&(this.nodes[number].state="cut")}),this.stop="limit"}stopEarly({scores,length}){let open=this.
open.flatMap(number=>number===null?[]:this.nodes[number]),best=Math.max(-1/0,...open.map(node=>node.
total));this.stop=scores[scores.length-1]>=best/lengthDivisor(length+1,this.lengthPenalty)?"beam-ful\
l":"settled";for(let node of open)node.state==="kept"&&(node.state="left")}tree(best){let parent=null;
for(let token of best){let node=this.nodes.find(candidate=>candidate.parent===parent&&candidate.id===
token);if(!node)break;node.best=!0,parent=node.number}let parents=new Set(this.nodes.map(node=>node.
parent));for(let node of this.nodes)node.state!=="kept"||parents.has(node.number)||node.step+1>=this.
lowest.length||Object.assign(node,{state:"outranked",threshold:this.lowest[node.step+1]});return{beam_size:this.
beamSize,length_penalty:this.lengthPenalty,steps:this.steps,stop:this.stop,nodes:this.nodes}}};var TranslationInspector=class{constructor({model,tokenizers,settings,prefix,longest}){this.model=model,
this.tokenizers=tokenizers,this.settings=settings,this.prefix=prefix,this.longest=longest}async prepareInspection(text,options){
let ids=this.tokenizers.source.encode(text);checkLength(ids.length,"sentence",this.longest);let result=await this.
findOutputs(ids,options),[best]=result.hypotheses;checkLength(best.tokens.length,"output",this.longest,
!0);let output=withEndSymbol(best);return{ids,result,best,output,source:[...ids,EOS],inputs:[BOS,...output.
slice(0,-1)]}}async head(text,{changes,...options}){let name=checkHead(this.model,options),engine=engineChanges(
this.model,changes),{source,inputs}=await this.prepareInspection(text,{...options,engine});return headSteps(
this.model,name,source,inputs,engine)}async inspect(text,{occlusion=!0,temperature=1,changes,...options}={}){
let{model,tokenizers,settings}=this,{pause,signal}=options,engine=engineChanges(model,changes),{ids,
result,best,output,source,inputs}=await this.prepareInspection(text,{...options,engine}),{logits,attention}=model.
forward(source,inputs,{...engine,attention:!0}),sourceText=textOf(tokenizers.source,source,text,settings.
source),targetText=textOf(tokenizers.target,output,tokenizers.target.outputText(best.tokens,text),settings.
target,text),cross=meanHeads(model,attention.cross,output.length,source.length);return{kind:"transla\
tion",run:settings.run,model:settings.facts,source:sourceText,target:targetText,inputs:tokensOf(tokenizers.
target,inputs,text),attention:[attentionOf("encoder",attention.encoder,[model.layers.encoder,model.heads,
source.length,source.length],!1),attentionOf("decoder",attention.decoder,[model.layers.decoder,model.
heads,output.length,output.length],engine.causal),attentionOf("cross",attention.cross,[model.layers.
decoder,model.heads,output.length,source.length],!1)],predictions:predictionsOf(logits,output,tokenizers.
target,result.given,temperature),score:best.score,log_probability:best.logProbability,ended:best.ended,
forced:!result.tree,prefix:result.given,hypotheses:result.tree?result.hypotheses.map(hypothesis=>this.
outputOf(hypothesis,text)):[],beam:result.tree,alignment:this.alignWords(cross,sourceText,targetText),
occlusion:occlusion?await this.leaveOutWords(ids,output,{pause,signal,engine}):null,source_neighbours:neighboursOf(
model.embeddingRows("encoder"),model.width,source,tokenizers.source),target_neighbours:neighboursOf(
model.embeddingRows("decoder"),model.width,output,tokenizers.target)}}async findOutputs(ids,{beam=this.
model.search.beam_size,prefix=[],target,pause,signal,engine}){let{model,tokenizers}=this,complete=prefix.
at(-1)===EOS,given=complete?prefix.slice(0,-1):prefix,forcedIds=this.prefix.every((token,t)=>given[t]===
token)?given:[...this.prefix,...given];if(checkLength(forcedIds.length,"prefix",this.longest,!0),target===
void 0&&!complete){let lengthPenalty=model.search.length_penalty,recorder=new BeamRecorder({beamSize:beam,
lengthPenalty,eos:EOS,piece:token=>tokenizers.target.pieces([token])[0]}),hypotheses=await translateIds(
model,ids,{beamSize:beam,nBest:beam,prefix:forcedIds,onStep:record=>recorder.step(record),pause,signal,
...engine});return{hypotheses,tree:recorder.tree(withEndSymbol(hypotheses[0])),given:forcedIds.length}}
let forced=target===void 0?forcedIds:[...this.prefix,...tokenizers.target.encode(target)];checkLength(
forced.length,"target",this.longest,!0);let tokenScores=this.tokenScores([...ids,EOS],[...forced,EOS],
engine);return{hypotheses:[makeOutput([...forced,EOS],tokenScores,!0,model.search.length_penalty)],tree:null,
given:forced.length+1}}tokenScores(source,output,engine){let{logits}=this.model.forward(source,[BOS,
...output.slice(0,-1)],engine),size=this.model.vocabulary;return output.map((token,t)=>{let row=logits.
subarray(t*size,(t+1)*size);return this.model.logProbabilities(row)[token]})}async leaveOutWords(ids,output,{
pause,signal,engine}){let{source,target}=this.tokenizers,baseline=this.tokenScores([...ids,EOS],output,
engine),words=[];for(let{word,ids:rest}of withoutEachWord(source,ids)){let drops=this.tokenScores([...rest,
EOS],output,engine).map((score,t)=>baseline[t]-score),[best]=rest.length?await translateIds(this.model,
rest,{beamSize:1,nBest:1,prefix:this.prefix,pause,signal,...engine}):[null];words.push({word,drop:drops.
reduce((sum,drop)=>sum+drop,0),drops,output:best?target.decode(best.tokens):""})}return{columns:target.
pieces(output),words}}alignWords(cross,source,target){let wordsOf=({tokens:tokens2})=>tokens2.flatMap(
token=>token.word??[]),[sourceWords,targetWords]=[wordsOf(source),wordsOf(target)];if(!source.words.
length||!target.words.length)return null;let{layers}=this.model,links=wordAlignment(cross,sourceWords,
targetWords),[rows,columns]=[Math.max(...targetWords)+1,Math.max(...sourceWords)+1],sums=new Float32Array(
rows*columns),tokens=new Float32Array(rows);return targetWords.forEach((to,t)=>{tokens[to]+=1,sourceWords.
forEach((from,s)=>{sums[to*columns+from]+=cross[t][s]})}),{layer:layers.decoder-1,pharaoh:pharaoh(links),
links,weights:packArray([rows,columns],sums.map((sum,i)=>sum/Math.max(1,tokens[Math.floor(i/columns)])))}}outputOf(output,source){
let{target}=this.tokenizers,ids=withEndSymbol(output);return{text:target.outputText(output.tokens,source),
score:output.score,log_probability:output.logProbability,ids,pieces:target.pieces(ids),token_scores:[
...output.tokenScores],ended:output.ended}}};var STAGES=[Direction,UnlikeTraining,Placeholders,OutputChecks,Confidence],PageTranslator=class _PageTranslator{constructor(model,tokenizers,settings){
this.model=model,this.tokenizers=tokenizers,this.settings=settings,this.prefix=settings.prefix??[],this.
longest=model.settings.max_positions-1,this.stages=STAGES.map(Feature=>new Feature(this)),this.splitter=
new Splitter({tokenizer:tokenizers.source,language:settings.source,target:settings.target,trainedLength:settings.
max_length,longest:this.longest,lowerCapitals:settings.lower_capitals,...Object.assign({},...this.stages.
map(({splitting})=>splitting))})}direction(name){return this.withSettings(settingsByName(this.settings,
name))}to(source,target){return this.withSettings(settingsByLanguages(this.settings,source,target))}withSettings(settings){
return settings===this.settings?this:new _PageTranslator(this.model,this.tokenizers,settings)}async translate(text,{
beam=this.model.search.beam_size,nBest=1,alignment=!1,changes,pause,signal}={}){let options={beamSize:Math.
max(beam,nBest),nBest,crossAttention:alignment,pause,signal,...engineChanges(this.model,changes)},draft={
line:this.splitter.line(text),options,outputs:[]};for(let stage of this.stages)draft=stage.before?.(
draft)??draft;draft=await this.search(draft);let outputs=draft.outputs.map(ranked=>ranked.slice(0,nBest));
return this.assemble({...draft,outputs},alignment)}async search(draft){let outputs=[];for(let part of draft.
line.parts){let accept=output=>this.stages.every(stage=>stage.accepts?.(part,output)??!0),ids=part.ids.
slice(0,this.longest);outputs.push(await translateIds(this.model,ids,{...draft.options,accept}))}if(outputs.
every(ranked=>ranked.length))return{...draft,outputs};for(let stage of this.stages)draft=stage.change?.(
draft)??draft;return this.search(draft)}assemble(draft,alignment){let{line,outputs}=draft,best=outputs.
map(([first])=>first),ranks=Math.max(0,...outputs.map(ranked=>ranked.length)),hypotheses=Array.from(
{length:ranks},(_,rank)=>this.joinOutputs(line,outputs.map(ranked=>ranked[Math.min(rank,ranked.length-
1)])));!ranks&&line.text&&hypotheses.push({text:line.text,score:0,tokens:[],token_scores:[],log_probability:0});
let truncated=line.parts.some(({ids})=>ids.length>this.longest)||best.some(output=>!output.ended),warnings=Object.
assign({},...this.stages.map(stage=>stage.warnings?.(draft))),translation={source:line.text,translation:hypotheses[0]?.
text??"",score:hypotheses[0]?.score??0,hypotheses,alignment:alignment&&hypotheses.length?pharaoh(this.
align(draft)):null,truncated,sentences:line.parts.length||1,warnings:ranks?Object.keys(warnings).filter(
name=>warnings[name]):[]};return Object.assign(translation,...this.stages.map(stage=>stage.fields?.(
translation,draft)))}joinOutputs(line,outputs){let tokenizer=this.tokenizers.target,scores=outputs.flatMap(
output=>[...output.tokenScores]),total=outputs.reduce((sum,output)=>sum+output.logProbability,0);return{
text:line.join(outputs.map(({tokens},index)=>line.parts[index].outputText(tokenizer,tokens))),score:outputs.
length===1?outputs[0].score:total/lengthDivisor(scores.length,this.model.search.length_penalty),tokens:outputs.
flatMap(output=>tokenizer.pieces(withEndSymbol(output))),token_scores:scores,log_probability:total}}align({
line,outputs,options}){let skip=options.skip??0,attended=outputs.map(([{tokens,crossAttention}],index)=>{
let rows=Math.max(1,tokens.length+skip),columns=Math.min(line.parts[index].ids.length,this.longest)+
1,weights=crossAttention;return{tokens,attention:meanHeads(this.model,weights,rows,columns).slice(skip)}});
return lineAlignment(line,attended,this.tokenizers,this.longest)}inspect(text,options){return new TranslationInspector(
this).inspect(text,options)}head(text,options){return new TranslationInspector(this).head(text,options)}};async function loadPageModel(wasmBytes,header,readTensors){let engine=await createEngine(wasmBytes);
return pageModel(await engine.loadModel(header,readTensors),header)}function pageModel(model,header){
let{source,target}=header.tokenizers,tokenizer=loadTokenizer(source);return header.task==="classific\
ation"?new PageClassifier(model,tokenizer,header.page):header.task==="language-modeling"?new PageGenerator(
model,tokenizer,header.page):new PageTranslator(model,{source:tokenizer,target:target?loadTokenizer(
target):tokenizer.forSide(tokenizer.side&&"target")},header.page)}async function answerRequest(loaded,path,body,control={}){
let{q="",model,...rest}=body,options={...rest,...control};if(loaded instanceof PageTranslator&&(loaded=
loaded.direction(model)),path==="api/translate")return translateSentences(loaded,q,options);if(path===
"line")return loaded.translate(q,{...options,alignment:!0});if(path==="api/inspect")return loaded.inspect(
q,options);if(path==="api/head")return loaded.head(q,options);if(path==="api/next")return nextTokens(
loaded,q,options);throw new RequestError(`there is no ${path} in a page without a server.`)}async function translateSentences(translator,text,{
beam=translator.model.search.beam_size,...options}){let started=performance.now(),sentences=[],translation="",
end=0;for(let[start,stop]of translator.splitter.units(text)){let sentence=await translator.translate(
text.slice(start,stop),{...options,beam,nBest:beam});sentences.push(sentence),translation+=text.slice(
end,start)+sentence.translation,end=stop}let tokens=sentences.reduce((sum,{hypotheses})=>sum+(hypotheses[0]?.
tokens.length??0),0);return{translation:translation+text.slice(end),sentences,tokens,seconds:(performance.
now()-started)/1e3}}async function nextTokens(generator,text,{write=0,temperature=1,top_k:topK=0,top_p:topP=1,
seed,...options}){let sampling={temperature,topK,topP,seed:seed??Math.floor(Math.random()*2147483648)};
return write?{text:await generator.generate(text,{...options,sampling,maxTokens:write})}:generator.next(
text,{...options,sampling})}return __toCommonJS(model_exports);})();
