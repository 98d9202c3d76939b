# docker build -t tonlake . && docker run -p 8080:8080 -v "$PWD/mainnet.lake:/lake" tonlake
#
# The lake is a folder of the host (an absolute path: a bare name would be a new, empty volume) that
# user 10001 can read. Until its first commit, requests get 503. To ingest into it, as that user:
# docker run -v "$PWD/mainnet.lake:/lake" -v /var/ton-work/db:/node:ro tonlake ingest --node /node --lake /lake
FROM python:3.13-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python -m venv /opt/tonlake \
    && python -m pip install --no-cache-dir uv \
    && uv pip install --no-cache --python /opt/tonlake --require-hashes \
        --constraints /src/requirements.lock --requirements /src/pyproject.toml --extra tvm \
    && uv pip install --no-cache --python /opt/tonlake --no-deps /src

FROM python:3.13-slim
COPY --from=build /opt/tonlake /opt/tonlake
RUN useradd --system --uid 10001 tonlake && install --directory --owner tonlake /lake
USER tonlake
VOLUME ["/lake"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["/opt/tonlake/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/healthz')"]
ENTRYPOINT ["/opt/tonlake/bin/tonlake"]
CMD ["serve", "--lake", "/lake", "--wait", "--host", "0.0.0.0", "--port", "8080"]
