"""A server for one's own models (extra ``serve``): LibreTranslate's REST interface, and a little more.

```
server.py    listening, warming up, ending          app.py      the routes, put together
guard.py     what holds for every request            fields.py   parameters: JSON, form, multipart, query string
access.py    keys and how often one may ask          answers.py  JSON and refusals
work.py      how many requests at once, how long     batching.py texts of many requests computed together
models.py    the runs that are served                engine.py   a translator's way into the common queue
translating.py  classifying.py  completing.py        what is computed
markup/      HTML taken apart and put together       detecting.py  which language a text is in
looking.py   what the page asks for
pages.py     files for a browser                     metrics.py  openapi.py
```
"""
