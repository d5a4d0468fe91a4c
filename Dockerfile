# vip without FFmpeg's programs: PyAV brings FFmpeg's libraries. See docs/docker.md.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY prompts prompts
COPY vip vip
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.12-slim
ARG EXTRAS=""
COPY --from=build /wheel /wheel
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)$EXTRAS" && rm -r /wheel
# /data is open, so that `docker run --user` can be anybody; caches, settings and trust are kept in /home/vip
RUN useradd --create-home --uid 1000 vip && chmod 777 /home/vip && mkdir --mode 777 /data
ENV HOME=/home/vip
USER vip
WORKDIR /data
ENTRYPOINT ["vip"]
CMD ["--help"]
