# docker build --tag agentv .
# docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/project" agentv eval evals
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
# Extras, separated by commas: docker build --build-arg EXTRAS=metrics,typescript
ARG EXTRAS=""
RUN python -m venv /opt/agentv \
    && /opt/agentv/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt ".${EXTRAS:+[$EXTRAS]}"

FROM python:3.12-slim
# The home can be written to by every user: --user gives the files of a run the owner of the project.
RUN useradd --uid 10001 --home-dir /home/agentv agentv && install --directory --mode 1777 /home/agentv /project /data
COPY --from=build /opt/agentv /opt/agentv
ENV PATH="/opt/agentv/bin:$PATH" HOME=/home/agentv
USER 10001
WORKDIR /project
ENTRYPOINT ["agentv"]
CMD ["--help"]
