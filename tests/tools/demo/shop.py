"""A web shop in Python: payments, orders, a back office."""

from demo.script import CODEX, HAIKU, OPUS, SONNET, Delegate, Edit, Read, Reply, Search, Shell, Story, Turn, Write

WEBHOOK_BEFORE = """
    @router.post("/hooks/payment")
    async def payment_hook(event: PaymentEvent, db: AsyncSession = Depends(session)) -> dict[str, bool]:
        order = await db.get_one(Order, event.order_id)
        await payments.capture(order)
        await mailer.send_receipt(order)
        await db.commit()
        return {"ok": True}
    """

WEBHOOK_AFTER = """
    @router.post("/hooks/payment")
    async def payment_hook(
        event: PaymentEvent, later: BackgroundTasks, db: AsyncSession = Depends(session)
    ) -> dict[str, bool]:
        if not await first_delivery(db, event.id):
            return {"ok": True}
        order = await db.get_one(Order, event.order_id)
        await payments.capture(order, idempotency_key=event.id)
        await db.commit()
        later.add_task(mailer.send_receipt, order.id)
        return {"ok": True}


    async def first_delivery(db: AsyncSession, event_id: str) -> bool:
        seen = insert(WebhookEvent).values(id=event_id).on_conflict_do_nothing()
        return (await db.execute(seen)).rowcount == 1
    """

WEBHOOK = Story(
    agent="claude",
    project="shop",
    start="2026-11-17T08:52:10",
    model=OPUS,
    title="Make the webhook retry idempotent",
    branch="fix/webhook-retry",
    turns=[
        Turn(
            """
            Three customers were charged twice last night. The payment provider says that it repeats a webhook until
            we answer with 2xx. Make the webhook retry idempotent, please.
            """,
            [
                Reply(
                    "I'll look at the handler and at what the log says about last night.",
                    [
                        Read("app/webhooks.py", WEBHOOK_BEFORE),
                        Shell(
                            "grep 'POST /hooks/payment' logs/shop-2026-11-16.log | grep evt_8812",
                            """
                            23:41:07 POST /hooks/payment evt_8812 500 in 10.03s retry 0
                            23:41:38 POST /hooks/payment evt_8812 500 in 10.02s retry 1
                            23:42:41 POST /hooks/payment evt_8812 200 in 0.31s retry 2
                            """,
                            about="Find the deliveries of one event",
                        ),
                    ],
                ),
                Reply(
                    """
                    That explains it. The handler captures the payment *before* it mails the receipt. The mail server
                    hung, so after 10 seconds we answered 500, with the money already taken. Each webhook retry took it
                    again: `evt_8812` was captured three times.

                    I'll remember each event by its id, in the same transaction as the order, and mail the receipt
                    after the answer.
                    """,
                    [
                        Edit("app/webhooks.py", WEBHOOK_BEFORE, WEBHOOK_AFTER),
                        Write(
                            "migrations/0042_webhook_event.sql",
                            """
                            create table webhook_event (
                                id text primary key,
                                received_at timestamptz not null default now()
                            );
                            """,
                        ),
                        Write(
                            "tests/test_webhooks.py",
                            """
                            async def test_a_retry_captures_nothing(client, payments, paid_event):
                                first = await client.post("/hooks/payment", json=paid_event)
                                retry = await client.post("/hooks/payment", json=paid_event)

                                assert (first.status_code, retry.status_code) == (200, 200)
                                assert payments.captured == [paid_event["order_id"]]


                            async def test_a_slow_mail_server_does_not_fail_the_webhook(client, mailer, paid_event):
                                mailer.hang()

                                assert (await client.post("/hooks/payment", json=paid_event)).status_code == 200
                            """,
                        ),
                    ],
                    thinks="""
                    The unique key must be taken before the capture, or two deliveries could both pass the check. And
                    the provider supports idempotency keys, so the event id should go there as well.
                    """,
                ),
                Reply(
                    "",
                    [
                        Shell(
                            "pytest -q tests/test_webhooks.py",
                            """
                            FF                                                                   [100%]
                            E   sqlalchemy.exc.ProgrammingError: relation "webhook_event" does not exist
                            2 failed in 1.84s
                            """,
                            about="Run the new tests",
                            exit=1,
                            seconds=3.1,
                        )
                    ],
                ),
                Reply(
                    "The test database has not seen the migration yet.",
                    [
                        Shell(
                            "make migrate-test && pytest -q tests/test_webhooks.py tests/test_orders.py",
                            """
                            applied 0042_webhook_event.sql
                            ...................                                                  [100%]
                            19 passed in 4.02s
                            """,
                            about="Migrate the test database, test again",
                            seconds=6.4,
                        )
                    ],
                ),
                Reply(
                    """
                    A webhook retry is harmless now:

                    - The event's id goes into `webhook_event` before anything else happens. A retry finds it there and
                      gets 200 at once.
                    - The id is also the idempotency key of the capture, so even a crash between capture and commit
                      cannot charge twice.
                    - The receipt is mailed after the answer. A slow mail server no longer makes us fail.

                    Two tests cover the retry and the hanging mail server. `migrations/0042` has to run before the
                    deployment.
                    """
                ),
            ],
            wait=21,
        ),
        Turn(
            "What if two deliveries of the same event arrive at the same moment?",
            [
                Reply(
                    "Then the primary key decides. I'll prove it with a test instead of a promise.",
                    [
                        Edit(
                            "tests/test_webhooks.py",
                            "async def test_a_slow_mail_server_does_not_fail_the_webhook(client, mailer, paid_event):",
                            """
                            async def test_two_deliveries_at_once_capture_once(client, payments, paid_event):
                                await asyncio.gather(
                                    *(client.post("/hooks/payment", json=paid_event) for _ in range(8))
                                )

                                assert payments.captured == [paid_event["order_id"]]


                            async def test_a_slow_mail_server_does_not_fail_the_webhook(client, mailer, paid_event):
                            """,
                        ),
                        Shell(
                            "pytest -q tests/test_webhooks.py --count 20",
                            """
                            ............................................................         [100%]
                            60 passed in 9.77s
                            """,
                            about="Run the tests twenty times",
                            seconds=11.2,
                        ),
                    ],
                ),
                Reply(
                    """
                    Eight deliveries at once capture once, in twenty runs out of twenty. The second `insert` waits for
                    the first transaction: if that one commits, it inserts nothing and answers 200; if it rolls back,
                    the second delivery does the work.
                    """
                ),
            ],
            wait=17,
        ),
        Turn(
            "Good. Add a line to the changelog and commit.",
            [
                Reply(
                    "",
                    [
                        Edit(
                            "CHANGELOG.md",
                            "## Unreleased",
                            """
                            ## Unreleased

                            - A repeated payment webhook no longer captures the payment again.
                            """,
                        ),
                        Shell(
                            "git add -A && git commit -qm 'Make the webhook retry idempotent' && git show --stat HEAD",
                            """
                             CHANGELOG.md                      |  2 ++
                             app/webhooks.py                   | 18 ++++++++++++++----
                             migrations/0042_webhook_event.sql |  4 ++++
                             tests/test_webhooks.py            | 23 +++++++++++++++++++++++
                             4 files changed, 43 insertions(+), 4 deletions(-)
                            """,
                            about="Commit",
                        ),
                    ],
                ),
                Reply("Committed on `fix/webhook-retry`. Run `migrations/0042` before you deploy it."),
            ],
        ),
    ],
)

QUEUE = Story(
    agent="claude",
    project="shop",
    start="2026-11-17T08:58:32",
    model=OPUS,
    title="Work through a queue instead",
    branch="fix/webhook-retry",
    forked_from=WEBHOOK,
    after=1,
    turns=[
        Turn(
            """
            How much work would it be to only store the event in the request, and to let the worker do the rest?
            """,
            [
                Reply(
                    "Let me see what the worker can do today.",
                    [
                        Search(
                            "def handle_",
                            """
                            app/worker/jobs.py:14:async def handle_invoice(job: Job) -> None:
                            app/worker/jobs.py:31:async def handle_stock_sync(job: Job) -> None:
                            """,
                        ),
                        Read(
                            "app/worker/loop.py",
                            """
                            async def work(db: AsyncSession) -> None:
                                while job := await claim_next(db):  # select … for update skip locked
                                    try:
                                        await HANDLERS[job.kind](job)
                                    except Exception:
                                        await reschedule(db, job, delay=BACKOFF[min(job.attempts, 5)])
                                    else:
                                        await finish(db, job)
                            """,
                        ),
                    ],
                ),
                Reply(
                    """
                    About half a day; the worker already claims jobs safely and backs off.

                    | | now | with the queue |
                    |---|---|---|
                    | answer to the provider | after the capture, ~300 ms | after one insert, ~10 ms |
                    | capture fails | provider repeats it, at its pace | worker repeats it, at ours |
                    | new parts | none | `handle_payment`, an alert on stuck jobs |

                    I would merge the fix as it is, since it stops the double charges, and move to the queue in a
                    change of its own.
                    """
                ),
            ],
        )
    ],
)

FLAKY = Story(
    agent="claude",
    project="shop",
    start="2026-11-12T13:05:44",
    model=SONNET,
    title="Flaky test_cart_total",
    turns=[
        Turn(
            "test_cart_total fails about once in ten runs on CI and never on my machine. Find out why.",
            [
                Reply(
                    "First I'll try to make it fail here.",
                    [
                        Shell(
                            "for i in $(seq 20); do PYTHONHASHSEED=$i pytest -q tests/test_cart.py | tail -1; done "
                            "| sort | uniq -c",
                            """
                                 18 31 passed
                                  2 1 failed, 30 passed
                            """,
                            about="Run the tests under twenty hash seeds",
                            seconds=41,
                        ),
                        Read(
                            "app/cart.py",
                            """
                            def total(lines: list[Line], vouchers: set[Voucher]) -> Decimal:
                                amount = sum((line.price * line.count for line in lines), Decimal(0))
                                for voucher in vouchers:
                                    amount = voucher.apply(amount).quantize(CENT)
                                return amount
                            """,
                        ),
                    ],
                ),
                Reply(
                    """
                    It depends on the hash seed: `vouchers` is a set, and the total depends on the order in which
                    vouchers are applied. 10 % off and then 5 euros off is not 5 euros off and then 10 %. CI draws a
                    new seed for each run, your machine has `PYTHONHASHSEED=0` in its `.env`.

                    I'll let an agent look for the same mistake elsewhere while I fix this one.
                    """,
                    [
                        Delegate(
                            "Find iteration over sets",
                            "Find every place in app/ that iterates over a set where the order matters. Report file, "
                            "line and why.",
                            [
                                Reply(
                                    "",
                                    [
                                        Search(
                                            r": (frozen)?set\[",
                                            """
                                            app/cart.py:22:def total(lines: list[Line], vouchers: set[Voucher])
                                            app/export.py:9:    columns: set[str]
                                            app/search.py:40:    seen: set[int] = set()
                                            """,
                                        ),
                                        Read(
                                            "app/export.py",
                                            """
                                            def header(self) -> str:
                                                return ";".join(self.columns)
                                            """,
                                        ),
                                    ],
                                ),
                                Reply(
                                    """
                                    Two places depend on the order:
                                    1. app/cart.py:22, vouchers are applied in the order of the set.
                                    2. app/export.py:9, the columns of the CSV export change from run to run.

                                    app/search.py:40 only tests for membership.
                                    """
                                ),
                            ],
                            HAIKU,
                        )
                    ],
                ),
                Reply("The agent is on its way."),
                Reply(
                    """
                    It found one more: the CSV export shuffles its columns. I'll fix both. Percentages come first, as
                    the terms of the shop say.
                    """,
                    [
                        Edit(
                            "app/cart.py",
                            "    for voucher in vouchers:",
                            "    for voucher in sorted(vouchers, key=lambda one: (one.kind != 'percent', one.code)):",
                        ),
                        Edit("app/export.py", '";".join(self.columns)', '";".join(sorted(self.columns))'),
                        Shell(
                            "for i in $(seq 40); do PYTHONHASHSEED=$i pytest -q tests/test_cart.py | tail -1; done "
                            "| sort | uniq -c",
                            "     40 31 passed",
                            about="Run the tests under forty hash seeds",
                            seconds=78,
                        ),
                    ],
                ),
                Reply(
                    """
                    Fixed: 40 hash seeds, 40 green runs. It was not only the test. Customers with two vouchers could
                    see a total that changed by some cents between two requests.
                    """
                ),
            ],
        )
    ],
)

SLOW_QUERY = Story(
    agent="codex",
    project="shop",
    start="2026-11-13T10:20:05",
    model=CODEX,
    title="Order search: 1.9 s to 38 ms",
    turns=[
        Turn(
            """
            The order search in the back office takes two seconds since we passed a million orders. Make it fast
            again.
            """,
            [
                Reply(
                    "I'll look at the query and at its plan.",
                    [
                        Shell(
                            "sed -n 20,34p app/backoffice/orders.py",
                            """
                            def newest(self, customer: str, page: int) -> list[Order]:
                                return self.db.scalars(
                                    select(Order)
                                    .join(Customer)
                                    .where(func.lower(Customer.name) == customer.lower())
                                    .order_by(Order.created_at.desc())
                                    .offset(page * 50)
                                    .limit(50)
                                ).all()
                            """,
                        ),
                        Shell(
                            "psql shop_copy -f explain.sql",
                            """
                            Limit (actual time=1904.1..1904.2 rows=50 loops=1)
                              -> Sort (actual time=1904.1..1904.1 rows=50 loops=1)
                                 -> Hash Join (actual time=61.3..1702.9 rows=8120 loops=1)
                                    -> Seq Scan on orders (actual time=0.02..1101.6 rows=1043311 loops=1)
                                    -> Seq Scan on customers (actual time=0.02..58.8 rows=41 loops=1)
                            """,
                            seconds=2.3,
                        ),
                    ],
                    thinks="Both tables are scanned: lower(name) has no index, and neither has orders.customer_id.",
                ),
                Reply(
                    """
                    Both tables are read from end to end: `lower(name)` has no index, and `orders` has none that starts
                    with the customer. Two indexes will do.
                    """,
                    [
                        Write(
                            "migrations/0041_order_search.sql",
                            """
                            create index concurrently customers_lower_name on customers (lower(name));
                            create index concurrently orders_by_customer on orders (customer_id, created_at desc);
                            """,
                        ),
                        Shell(
                            "psql shop_copy -f migrations/0041_order_search.sql && psql shop_copy -f explain.sql",
                            """
                            CREATE INDEX
                            CREATE INDEX
                            Limit (actual time=37.4..37.6 rows=50 loops=1)
                              -> Sort (actual time=37.4..37.5 rows=50 loops=1)
                                 -> Nested Loop (actual time=0.09..31.2 rows=8120 loops=1)
                                    -> Index Scan using customers_lower_name on customers (rows=41 loops=1)
                                    -> Index Scan using orders_by_customer on orders (rows=198 loops=41)
                            """,
                            seconds=14.8,
                        ),
                    ],
                ),
                Reply(
                    """
                    From 1.9 s to 38 ms on the copy of production. Both indexes are built `concurrently`, so that
                    nothing is locked while they grow; they take 31 MB together.
                    """
                ),
            ],
        ),
        Turn(
            "Does it also hold for page 200?",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "psql shop_copy -v page=200 -f explain.sql | head -1",
                            "Limit (actual time=48.9..49.0 rows=50 loops=1)",
                            seconds=0.6,
                        )
                    ],
                ),
                Reply(
                    """
                    Yes: 49 ms. The offset costs little here, because the rows of one customer are few. I would leave
                    it.
                    """
                ),
            ],
        ),
    ],
)

TRIGRAM = Story(
    agent="codex",
    project="shop",
    start="2026-11-13T10:24:50",
    model=CODEX,
    title="Trigram index instead",
    forked_from=SLOW_QUERY,
    after=1,
    turns=[
        Turn(
            "Try it with a trigram index instead, so that a part of the name is enough",
            [
                Reply(
                    "",
                    [
                        Shell(
                            'psql shop_copy -c "create index customers_name_trgm on customers using gin (name '
                            'gin_trgm_ops)" && psql shop_copy -f explain_like.sql | head -1',
                            """
                            CREATE INDEX
                            Limit (actual time=44.7..44.9 rows=50 loops=1)
                            """,
                            seconds=9.2,
                        )
                    ],
                ),
                Reply(
                    """
                    It works: `name ilike '%field%'` takes 45 ms. The index is three times as large (64 MB), and words
                    of one or two letters still scan the table. If a part of the name is what people type, it is worth
                    it; I would then drop `customers_lower_name`.
                    """
                ),
            ],
        )
    ],
)

TRAVERSAL = Story(
    agent="codex",
    project="shop",
    start="2026-11-09T15:33:21",
    model=CODEX,
    branch="security/invoice-path",
    turns=[
        Turn(
            "The scanner reports a path traversal in the invoice download. Fix it and add a test.",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "rg -n 'FileResponse' app && sed -n 11,18p app/invoices.py",
                            """
                            app/invoices.py:15:    return FileResponse(INVOICES / name)
                            @router.get("/invoices/{name:path}")
                            async def invoice(name: str, user: User = Depends(signed_in)) -> FileResponse:
                                return FileResponse(INVOICES / name)
                            """,
                        )
                    ],
                    thinks="`:path` lets slashes through, and nothing checks whose invoice it is either.",
                ),
                Reply(
                    """
                    The report is right, and there is a second problem: nobody checks whose invoice it is. I'll look
                    the file up through the order, so that no name from outside ever becomes a path.
                    """,
                    [
                        Edit(
                            "app/invoices.py",
                            """
                            @router.get("/invoices/{name:path}")
                            async def invoice(name: str, user: User = Depends(signed_in)) -> FileResponse:
                                return FileResponse(INVOICES / name)
                            """,
                            """
                            @router.get("/invoices/{number}")
                            async def invoice(number: int, user: User = Depends(signed_in)) -> FileResponse:
                                order = await own_order(user, invoice=number)
                                return FileResponse(INVOICES / f"{order.invoice_number}.pdf")
                            """,
                        ),
                        Write(
                            "tests/test_invoices.py",
                            """
                            @pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "1/../2"])
                            async def test_a_path_is_no_invoice(client, name):
                                assert (await client.get(f"/invoices/{name}")).status_code in (404, 422)


                            async def test_the_invoice_of_another_customer_is_not_found(client, others_invoice):
                                assert (await client.get(f"/invoices/{others_invoice}")).status_code == 404
                            """,
                        ),
                        Shell(
                            "pytest -q tests/test_invoices.py",
                            """
                            ....                                                                 [100%]
                            4 passed in 0.91s
                            """,
                            seconds=2.2,
                        ),
                    ],
                ),
                Reply(
                    """
                    Fixed. The route takes a number now, not a name, and only the customer's own invoices are found. In
                    the access log of the last 90 days nobody had tried `..` on this route.
                    """
                ),
            ],
        )
    ],
)

LOGIN_BEFORE = """
    @router.post("/login")
    async def login(form: LoginForm) -> Response:
        user = await users.by_email(form.email)
        if user is None or not user.password_matches(form.password):
            raise HTTPException(401)
        return signed_in_response(user)
    """

RATE_LIMIT = Story(
    agent="droid",
    project="shop",
    start="2026-11-05T11:02:37",
    model=SONNET,
    tags=("auth",),
    turns=[
        Turn(
            "Add a rate limit to the login: five wrong passwords in ten minutes per account and address",
            [
                Reply(
                    "Let me look at the login and at what we already have in Redis.",
                    [
                        Read("app/login.py", LOGIN_BEFORE),
                        Search("Redis", "app/redis.py:6:redis = Redis.from_url(settings.redis_url)"),
                    ],
                ),
                Reply(
                    "",
                    [
                        Write(
                            "app/limits.py",
                            """
                            WINDOW = 600
                            ALLOWED = 5


                            class Tries:
                                def __init__(self, account: str, address: str) -> None:
                                    self.key = f"login:{account}:{address}"

                                async def wait(self) -> int:
                                    if int(await redis.get(self.key) or 0) < ALLOWED:
                                        return 0
                                    return max(await redis.ttl(self.key), 1)

                                async def failed(self) -> None:
                                    if await redis.incr(self.key) == 1:
                                        await redis.expire(self.key, WINDOW)
                            """,
                        ),
                        Edit(
                            "app/login.py",
                            LOGIN_BEFORE,
                            """
                            @router.post("/login")
                            async def login(form: LoginForm, request: Request) -> Response:
                                tries = limits.Tries(form.email, request.client.host)
                                if seconds := await tries.wait():
                                    raise HTTPException(429, headers={"Retry-After": str(seconds)})
                                user = await users.by_email(form.email)
                                if user is None or not user.password_matches(form.password):
                                    await tries.failed()
                                    raise HTTPException(401)
                                return signed_in_response(user)
                            """,
                        ),
                        Shell(
                            "pytest -q tests/test_login.py",
                            """
                            .........                                                            [100%]
                            9 passed in 1.37s
                            """,
                            about="Run the login tests",
                            seconds=2.9,
                        ),
                    ],
                ),
                Reply(
                    """
                    Done. The sixth try within ten minutes is answered with 429 and a `Retry-After` header. The limit
                    counts account and address together, so nobody can lock somebody else out. It covers the login
                    only; the webhook routes are as they were.
                    """
                ),
            ],
        )
    ],
)

STORIES = (WEBHOOK, QUEUE, FLAKY, SLOW_QUERY, TRIGRAM, TRAVERSAL, RATE_LIMIT)
