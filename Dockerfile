# An image with the program as its entry point:
#   docker build -t manyheads .
#   docker run --rm --user "$(id -u)" -v "$PWD:/data" manyheads demo --out runs/demo
# For a CPU alone, name the index of PyTorch's CPU builds: --build-arg PIP_EXTRA_INDEX_URL=....
FROM python:3.13-slim
ARG PIP_EXTRA_INDEX_URL=""
ARG EXTRAS="ct2"
COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[${EXTRAS}]" && rm -rf /source
RUN useradd --create-home reader
USER reader
WORKDIR /data
ENTRYPOINT ["manyheads"]
CMD ["--help"]
