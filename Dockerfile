# An image with the program as its entry point:
#   docker build -t manyheads .
#   docker run --rm --user "$(id -u)" -v "$PWD:/data" -p 5000:5000 manyheads serve --host 0.0.0.0 runs/demo
# It translates, classifies, generates and serves on a CPU, without torch. To train in it as well:
#   docker build --build-arg EXTRAS=serve,train -t manyheads .
# with PyTorch's build for CPUs; --build-arg UV_TORCH_BACKEND=cu130 takes the one for CUDA 13.0.
FROM python:3.13-slim

# A compiler for the C with which a CPU decodes; without one nothing is decoded unless torch is there.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

ARG UV_TORCH_BACKEND="cpu"
ARG EXTRAS="serve"
COPY . /source
# The doctor needs torch, and comes with the extra that trains alone.
RUN case ",${EXTRAS}," in *,train,*|*,all,*) doctor=/source/packages/transformer-doctor ;; *) doctor= ;; esac \
    && pip install --no-cache-dir --constraint /source/constraints.txt uv \
    && uv pip install --system --no-cache --constraint /source/constraints.txt /source/packages/bitext ${doctor} "/source[${EXTRAS}]" \
    && rm -rf /source

# Whoever runs it (--user) can write here: results, and compiled code in a folder of their own.
RUN useradd --create-home reader && mkdir --mode=1777 /data /cache
ENV HOME=/data XDG_CACHE_HOME=/cache
USER reader
WORKDIR /data
ENTRYPOINT ["manyheads"]
CMD ["--help"]
