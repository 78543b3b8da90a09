"""An HTTP server for trained runs (extra ``serve``): LibreTranslate's REST interface, and routes for other models.

```
server.py    socket, loading, shutdown              app.py       routes behind host and origin checks, headers, log
access.py    API keys and rate limits               fields.py    request fields: JSON, form, multipart, query string
request_pool.py  one thread per request, time limit batching.py  dynamic and continuous batching
models.py    the runs that are served               queued_engine.py  a translator's engine that uses the queue
connections.py   uvicorn's connection with a time limit              responses.py JSON responses and API errors
translation_routes.py  classification_routes.py  completion_routes.py  inspection_routes.py
service_routes.py  /health, /metrics, /spec, files  openapi.json the interface, for /spec
markup/      HTML to text blocks and back           metrics.py   Prometheus metrics
```
"""
