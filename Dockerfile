# The gateway with what ordinary stdio servers are started by: npx (Node.js), uvx (uv), python and git.
FROM python:3.13-slim-trixie

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git nodejs npm util-linux \
 && rm -rf /var/lib/apt/lists/*

RUN useradd --uid 10001 --user-group --create-home --home-dir /home/viaduct --shell /usr/sbin/nologin viaduct \
 && install -d -o viaduct -g viaduct /home/viaduct/.cache /home/viaduct/.npm \
 && install -d /config

COPY pyproject.toml README.md LICENSE /usr/src/viaduct/
COPY app /usr/src/viaduct/app
RUN pip install --no-cache-dir /usr/src/viaduct uv

ENV HOME=/home/viaduct
ENV VIADUCT_LISTEN=0.0.0.0:8080
WORKDIR /home/viaduct
USER 10001:10001
EXPOSE 8080

# http.client and not urllib: a proxy that the environment names must not be asked about our own port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["python3", "-c", "import http.client, os; port = os.environ['VIADUCT_LISTEN'].rpartition(':')[2]; c = http.client.HTTPConnection('127.0.0.1', int(port), timeout=3); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]

# No init before it: as PID 1 it reaps what servers leave behind, and heeds SIGTERM from its start.
ENTRYPOINT ["viaduct"]
CMD ["serve", "/config/viaduct.json"]
