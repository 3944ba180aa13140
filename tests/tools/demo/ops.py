"""Servers, images and pipelines."""

from demo.script import CODEX, OPUS, SONNET, Compaction, Edit, Read, Reply, Search, Shell, Story, Turn, Write

POSTGRES = Story(
    agent="claude",
    project="ops",
    start="2026-11-10T12:30:55",
    model=OPUS,
    title="Postgres 14 to 17 with a minute of downtime",
    branch="postgres-17",
    turns=[
        Turn(
            """
            We have to move the shop's database from Postgres 14 to 17. It has 180 GB and may be down for a minute, not
            for an hour. How do we do it?
            """,
            [
                Reply(
                    "Two facts decide that: which extensions are in use, and whether every table has a primary key.",
                    [
                        Shell(
                            "psql shop -Atc 'select extname, extversion from pg_extension'",
                            """
                            plpgsql|1.0
                            pg_trgm|1.6
                            pg_stat_statements|1.9
                            """,
                            about="List the extensions",
                        ),
                        Shell(
                            "psql shop -Atf sql/tables_without_key.sql",
                            "audit_log",
                            about="Find tables without a primary key",
                        ),
                    ],
                ),
                Reply(
                    """
                    Then logical replication is the way:

                    1. Start a Postgres 17 beside the old one and copy the schema.
                    2. Publish all tables on 14, subscribe on 17. The first copy takes about three hours, while the
                       shop runs.
                    3. When the lag is zero: stop writes, copy the sequences, switch the pooler. That is the minute.

                    `audit_log` has no primary key, which matters for updates only, and it is only ever appended to.
                    All three extensions exist for 17.
                    """,
                    thinks="""
                    pg_upgrade --link would also be fast, but there is no way back once the new cluster was started.
                    Sequences are not replicated: they must be copied at the switch.
                    """,
                ),
            ],
        ),
        Turn(
            "Write the runbook and a script for the switch",
            [
                Reply(
                    "",
                    [
                        Read(
                            "pooler/pgbouncer.ini",
                            """
                            [databases]
                            shop = host=db14.internal port=5432
                            """,
                        ),
                        Write(
                            "postgres/switch.sh",
                            """
                            #!/bin/sh
                            set -eu
                            psql pgbouncer -c 'PAUSE shop'
                            psql "$OLD" -Atc 'select pg_current_wal_lsn()' > lsn
                            psql "$NEW" -v lsn="$(cat lsn)" -f sql/wait_until_replayed.sql
                            psql "$OLD" -Atf sql/sequences.sql | psql "$NEW" -q
                            sed -i 's/db14/db17/' /etc/pgbouncer/pgbouncer.ini
                            psql pgbouncer -c 'RELOAD' -c 'RESUME shop'
                            """,
                        ),
                        Shell(
                            "shellcheck postgres/switch.sh && ./postgres/rehearse.sh",
                            """
                            paused  00:00.0
                            replayed 00:01.2
                            sequences 00:01.9
                            resumed 00:02.3
                            row counts equal in 61 of 61 tables
                            """,
                            about="Rehearse the switch on the staging pair",
                            seconds=64,
                        ),
                    ],
                ),
                Reply(
                    """
                    The rehearsal took 2.3 seconds from pause to resume, and all 61 tables have equal counts. The
                    runbook is in `postgres/RUNBOOK.md`: checks before, the switch, and the way back.
                    """
                ),
            ],
            wait=1120,
        ),
        Compaction(
            """
            Goal: move the shop's database (180 GB) from Postgres 14 to 17 with at most a minute of downtime.

            Decided: logical replication; pg_upgrade was rejected since there is no way back. Sequences are copied at
            the switch.

            Done: postgres/RUNBOOK.md, postgres/switch.sh, rehearsal on staging (2.3 s, 61 of 61 tables equal).

            Open: the switch in production, then a reverse subscription for the way back.
            """
        ),
        Turn(
            "The switch went well, 4 seconds. How do we keep a way back for the next days?",
            [
                Reply(
                    "With a subscription in the other direction. It must not copy the data again.",
                    [
                        Write(
                            "postgres/way_back.sql",
                            """
                            -- on 17
                            drop subscription forward;
                            create publication back for all tables;
                            -- on 14
                            create subscription back connection 'host=db17.internal dbname=shop'
                                publication back with (copy_data = false);
                            """,
                        ),
                        Shell(
                            "./postgres/lag.sh back",
                            "back: 0 bytes behind, applied 412 transactions in the last minute",
                            about="Look at the lag of the way back",
                            seconds=1.1,
                        ),
                    ],
                ),
                Reply(
                    """
                    The old server follows the new one now, 0 bytes behind. To go back, run `switch.sh` with `OLD` and
                    `NEW` exchanged. I would keep it for a week, then drop the subscription and the old server.
                    """
                ),
            ],
        ),
    ],
)

DOCKER_IMAGE = Story(
    agent="claude",
    project="ops",
    start="2026-11-16T16:22:09",
    model=SONNET,
    title="Shrink the shop's Docker image",
    branch="smaller-image",
    turns=[
        Turn(
            "Our Docker image has 1.4 GB and deployments are slow. What is in there?",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "docker history --format '{{.Size}}\\t{{.CreatedBy}}' shop:latest | head -5",
                            """
                            612MB   RUN pip install -r requirements.txt
                            389MB   RUN apt-get update && apt-get install -y build-essential libpq-dev
                            208MB   COPY . /app
                            124MB   python:3.12
                            """,
                            about="Show the layers by size",
                        ),
                        Shell(
                            "du -sh .git node_modules tests/fixtures | sort -h",
                            """
                            9M      tests/fixtures
                            61M     node_modules
                            121M    .git
                            """,
                            about="See what COPY takes along",
                        ),
                    ],
                ),
                Reply(
                    """
                    Three things that nobody needs at run time:

                    - the compiler and its headers, 389 MB
                    - `.git`, `node_modules` and test data, about 190 MB
                    - pip's cache, roughly half of the 612 MB

                    A second stage without a compiler and a `.dockerignore` should bring it below 300 MB.
                    """
                ),
            ],
        ),
        Turn(
            "Go ahead",
            [
                Reply(
                    "",
                    [
                        Write(
                            "shop/Dockerfile",
                            """
                            FROM python:3.12 AS build
                            COPY requirements.txt .
                            RUN pip wheel --no-cache-dir --wheel-dir /wheels -r requirements.txt

                            FROM python:3.12-slim
                            RUN apt-get update && apt-get install -y --no-install-recommends libpq5 \\
                                && rm -rf /var/lib/apt/lists/*
                            RUN --mount=from=build,source=/wheels,target=/wheels pip install --no-cache-dir /wheels/*
                            COPY app /app/app
                            """,
                        ),
                        Shell(
                            "docker build -t shop:small shop && docker image ls --format '{{.Tag}} {{.Size}}' shop",
                            """
                            small 268MB
                            latest 1.4GB
                            """,
                            about="Build it and compare",
                            seconds=96,
                        ),
                    ],
                ),
                Reply("268 MB instead of 1.4 GB. Shall I build it once more without the cache, to be sure?"),
            ],
        ),
        Turn(
            "Yes",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "docker build --no-cache -t shop:small shop",
                            "",
                            about="Build it without the cache",
                            seconds=131,
                            interrupted=True,
                        )
                    ],
                )
            ],
        ),
    ],
)

CI_TIME = Story(
    agent="copilot",
    project="ops",
    start="2026-11-06T14:03:28",
    model=CODEX,
    title="Cut the CI time",
    turns=[
        Turn(
            "Our CI takes 19 minutes. Get it below 8 without dropping tests.",
            [
                Reply(
                    "I'll see where the time goes.",
                    [
                        Shell(
                            "python ci/timing.py --last 50",
                            """
                            step              median
                            install           4m 10s
                            lint              1m 55s
                            tests            11m 40s
                            build image       1m 20s
                            """,
                            about="Show the median time of each step",
                            seconds=3.4,
                        ),
                        Read(
                            "ci/pipeline.yml",
                            """
                            jobs:
                              all:
                                steps:
                                  - run: pip install -r requirements.txt
                                  - run: ruff check .
                                  - run: pytest
                                  - run: docker build .
                            """,
                        ),
                    ],
                    thinks="Everything runs in one job, one step after the other, and nothing is cached.",
                ),
                Reply(
                    "One job does everything in a row, with nothing cached. I'll split it.",
                    [
                        Edit(
                            "ci/pipeline.yml",
                            """
                            all:
                                steps:
                                  - run: pip install -r requirements.txt
                                  - run: ruff check .
                                  - run: pytest
                            """,
                            """
                            lint:
                                steps:
                                  - run: uvx ruff check .
                              test:
                                strategy:
                                  matrix: { shard: [1, 2, 3, 4] }
                                steps:
                                  - uses: ./ci/cached-venv
                                  - run: pytest -n auto --shard ${{ matrix.shard }}/4
                            """,
                        ),
                        Shell(
                            "python ci/simulate.py ci/pipeline.yml",
                            """
                            lint      0m 22s
                            test 1/4  3m 41s
                            test 2/4  3m 55s
                            test 3/4  3m 38s
                            test 4/4  4m 02s
                            build     5m 24s   waits for: test
                            """,
                            about="Estimate the new times",
                            seconds=1.2,
                        ),
                    ],
                ),
                Reply(
                    """
                    From 19 minutes to about five and a half: four shards of tests on a cached environment, lint beside
                    them, the image at the end. No test was dropped, 2,318 before and after.
                    """
                ),
            ],
        ),
        Turn(
            "Two tests now fail in shard 3 only",
            [
                Reply(
                    "",
                    [
                        Search('scope="session"', 'tests/conftest.py:18:@pytest.fixture(scope="session")'),
                        Shell(
                            "pytest -q -n 4 tests/test_stock.py | tail -2",
                            """
                            E   psycopg.errors.UniqueViolation: duplicate key value (sku)=(TEA-1)
                            2 failed, 40 passed in 6.12s
                            """,
                            about="Run them in parallel",
                            exit=1,
                            seconds=7.9,
                        ),
                    ],
                ),
                Reply(
                    "They share one database and both insert `TEA-1`. Each worker gets a database of its own.",
                    [
                        Edit(
                            "tests/conftest.py",
                            'name = "shop_test"',
                            "name = f\"shop_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}\"",
                        ),
                        Shell(
                            "pytest -q -n 4 tests/test_stock.py | tail -1",
                            "42 passed in 5.87s",
                            about="Run them again",
                            seconds=7.1,
                        ),
                    ],
                ),
                Reply("Green, also in parallel. It had only worked before because the tests ran in one order."),
            ],
        ),
    ],
)

BACKUP_DRILL = Story(
    agent="omp",
    project="ops",
    start="2026-11-11T08:40:16",
    model=CODEX,
    title="A drill for restoring backups",
    turns=[
        Turn(
            "We make backups every night but nobody ever restored one. Write a drill that does it each week.",
            [
                Reply(
                    "Let me look at what the backup writes.",
                    [
                        Shell(
                            "restic snapshots --latest 2 --compact",
                            """
                            ID        Time                 Host  Size
                            9c41e07a  2026-11-10 02:00:11  db1   41.2 GiB
                            f02d5b83  2026-11-11 02:00:09  db1   41.3 GiB
                            """,
                            seconds=1.9,
                        )
                    ],
                ),
                Reply(
                    "",
                    [
                        Write(
                            "backup/drill.sh",
                            """
                            #!/bin/sh
                            set -eu
                            restic restore latest --target /srv/drill --include /dump/shop.pgdump
                            createdb drill
                            trap 'dropdb drill; rm -rf /srv/drill' EXIT
                            pg_restore --jobs 4 --dbname drill /srv/drill/dump/shop.pgdump
                            age=$(psql drill -Atc 'select now() - max(created_at) < interval $$26 hours$$ from orders')
                            test "$age" = t
                            """,
                        ),
                        Shell(
                            "sudo ./backup/drill.sh",
                            """
                            restored 41.3 GiB in 6:12
                            pg_restore: error: extension "pg_trgm" is not available
                            """,
                            exit=1,
                            seconds=418,
                        ),
                    ],
                ),
                Reply(
                    """
                    The drill has already paid for itself: on a fresh server the restore **fails**, because `pg_trgm` is
                    not installed there.
                    """,
                    [
                        Edit(
                            "ansible/roles/db/tasks/main.yml",
                            "  - postgresql-17",
                            """
                            - postgresql-17
                              - postgresql-contrib
                            """,
                        ),
                        Shell(
                            "ansible-playbook db.yml --limit drill && sudo ./backup/drill.sh && echo restored",
                            """
                            drill : ok=14 changed=1 failed=0
                            restored 41.3 GiB in 6:09
                            restored
                            """,
                            seconds=702,
                        ),
                    ],
                ),
                Reply(
                    """
                    The backup can be restored now, in 11 minutes, and the newest order in it is from last night. A
                    timer runs the drill on Sundays and sends an alert when it fails.
                    """
                ),
            ],
        )
    ],
)

BASE_IMAGE = Story(
    agent="pi",
    project="ops",
    start="2026-11-17T06:31:02",
    model=SONNET,
    turns=[
        Turn(
            "Is our base image affected by this week's OpenSSL advisory?",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "docker run --rm shop:latest openssl version && trivy image -q --severity HIGH shop:latest",
                            """
                            OpenSSL 3.0.15
                            shop:latest (debian 12.8): Total: 1 (HIGH: 1)
                            libssl3  3.0.15-1~deb12u1  fixed in 3.0.16-1~deb12u1
                            """,
                            seconds=5.6,
                        )
                    ],
                ),
                Reply(
                    """
                    Yes: the image has 3.0.15, the fix is in 3.0.16. A rebuild with `--pull` is enough, the base image
                    was updated yesterday. The shop only uses TLS as a client, which the advisory rates as low risk.
                    """
                ),
            ],
        )
    ],
)

STORIES = (POSTGRES, DOCKER_IMAGE, CI_TIME, BACKUP_DRILL, BASE_IMAGE)
