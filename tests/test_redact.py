"""Redaction: every known format goes, whatever it stands in; what only looks like a secret stays.

No secret is written out here: each is put together from its prefix and characters drawn by lot, always the same ones.
"""

import json
import random
import re
import string
import time
from datetime import UTC, datetime

import pytest

from amux.model import Attachment, Message, Session, ToolCall, ToolResult
from amux.output import redact
from amux.output.redact import Redactor
from amux.results.hits import Match, SearchHit, Snippet

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "-_"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + string.digits
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def drawn(alphabet, length, seed=0):
    """Characters by lot that begin and end with a letter or digit and hold a digit, a small and a capital letter."""
    lot = random.Random(f"{alphabet}{length}{seed}")
    plain = [c for c in alphabet if c.isalnum()]
    while True:
        found = [lot.choice(plain), *lot.choices(alphabet, k=length - 2), lot.choice(plain)]
        kinds = [str.isdigit, *(kind for kind in (str.islower, str.isupper) if any(map(kind, alphabet)))]
        if all(any(kind(c) for c in found) for kind in kinds):
            return "".join(found)


def uuid(seed=0):
    return "-".join(drawn(HEX, length, seed) for length in (8, 4, 4, 4, 12))


def jwt():
    return ".".join(["ey" + "J" + drawn(WORD, 30), "ey" + "J" + drawn(WORD, 60), drawn(WORD, 43)])


FORMATS = {
    "anthropic api": "sk-" + "ant-api03-" + drawn(WORD, 93) + "AA",
    "anthropic oauth": "sk-" + "ant-oat01-" + drawn(WORD, 93),
    "openai legacy": "sk-" + drawn(ALNUM, 48),
    "openai project": "sk-" + "proj-" + drawn(WORD, 120),
    "openai service account": "sk-" + "svcacct-" + drawn(WORD, 120),
    "openrouter": "sk-" + "or-v1-" + drawn(HEX, 64),
    "deepseek": "sk-" + drawn(HEX, 32),
    "google api": "AI" + "za" + drawn(WORD, 35),
    "google oauth": "ya" + "29." + drawn(WORD, 100),
    "google refresh": "1/" + "/0" + drawn(WORD, 60),
    "google client secret": "GOC" + "SPX-" + drawn(WORD, 28),
    "github classic": "gh" + "p_" + drawn(ALNUM, 36),
    "github oauth": "gh" + "o_" + drawn(ALNUM, 36),
    "github user": "gh" + "u_" + drawn(ALNUM, 36),
    "github server": "gh" + "s_" + drawn(ALNUM, 36),
    "github refresh": "gh" + "r_" + drawn(ALNUM, 36),
    "github fine-grained": "github" + "_pat_" + drawn(ALNUM, 22) + "_" + drawn(ALNUM, 59),
    "gitlab personal": "gl" + "pat-" + drawn(WORD, 20),
    "gitlab trigger": "gl" + "ptt-" + drawn(HEX, 40),
    "gitlab deploy": "gl" + "dt-" + drawn(WORD, 20),
    "slack bot": "xo" + "xb-" + "123456789012-123456789012-" + drawn(ALNUM, 24),
    "slack user": "xo" + "xp-" + "123456789012-123456789012-" + drawn(HEX, 32),
    "slack workspace": "xo" + "xa-2-" + drawn(ALNUM, 40),
    "slack app": "xa" + "pp-1-A012345678-1234567890123-" + drawn(HEX, 64),
    "discord bot": "M" + drawn(ALNUM, 25) + "." + drawn(WORD, 6) + "." + drawn(WORD, 38),
    "telegram bot": "1234567890" + ":A" + drawn(WORD, 34),
    "aws access key": "AK" + "IA" + drawn(UPPER, 16),
    "aws session key": "AS" + "IA" + drawn(UPPER, 16),
    "azure client secret": drawn(ALNUM, 3) + "8" + "Q~" + drawn(WORD, 34),
    "stripe live": "sk" + "_live_" + drawn(ALNUM, 24),
    "stripe restricted": "rk" + "_live_" + drawn(ALNUM, 24),
    "stripe webhook": "wh" + "sec_" + drawn(ALNUM, 32),
    "twilio key": "S" + "K" + drawn(HEX, 32),
    "sendgrid": "S" + "G." + drawn(WORD, 22) + "." + drawn(WORD, 43),
    "mailgun": "ke" + "y-" + drawn(HEX, 32),
    "mailchimp": drawn(HEX, 32) + "-us" + "12",
    "npm": "np" + "m_" + drawn(ALNUM, 36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + drawn(WORD, 150),
    "docker": "dck" + "r_pat_" + drawn(WORD, 27),
    "vault": "hv" + "s." + drawn(WORD, 90),
    "terraform cloud": drawn(ALNUM, 14) + ".atlas" + "v1." + drawn(WORD, 67),
    "databricks": "da" + "pi" + drawn(HEX, 32),
    "digitalocean": "dop" + "_v1_" + drawn(HEX, 64),
    "doppler": "dp" + ".pt." + drawn(ALNUM, 43),
    "hugging face": "h" + "f_" + drawn(string.ascii_letters + "0", 34),
    "linear": "lin" + "_api_" + drawn(ALNUM, 40),
    "notion old": "sec" + "ret_" + drawn(ALNUM, 43),
    "notion": "nt" + "n_" + drawn(ALNUM, 46),
    "new relic": "NR" + "AK-" + drawn(UPPER, 27),
    "grafana service account": "gl" + "sa_" + drawn(ALNUM, 32) + "_" + drawn(HEX, 8),
    "grafana old": "ey" + "JrIjoi" + drawn(ALNUM, 72) + "==",
    "sentry": "snt" + "rys_" + drawn(BASE64, 80) + "=_" + drawn(BASE64, 43),
    "shopify": "shp" + "at_" + drawn(HEX, 32),
    "square": "sq0" + "atp-" + drawn(WORD, 22),
    "supabase": "sb" + "p_" + drawn(HEX, 40),
    "groq": "gs" + "k_" + drawn(ALNUM, 52),
    "replicate": "r" + "8_" + drawn(ALNUM, 37),
    "xai": "xa" + "i-" + drawn(ALNUM, 80),
    "perplexity": "pp" + "lx-" + drawn(ALNUM, 48),
    "age": "AGE-SECRET" + "-KEY-1" + drawn(UPPER, 58),
    "tailscale": "ts" + "key-auth-" + drawn(ALNUM, 12) + "-" + drawn(ALNUM, 32),
    "1password": "op" + "s_ey" + "J" + drawn(BASE64, 250),
    "atlassian": "AT" + "ATT3" + drawn(WORD, 180) + "=" + drawn(UPPER, 8),
    "bitbucket": "AT" + "BB" + drawn(ALNUM, 32),
    "figma": "fi" + "gd_" + drawn(WORD, 40),
    "postman": "PM" + "AK-" + drawn(HEX, 24) + "-" + drawn(HEX, 34),
    "planetscale": "psc" + "ale_tkn_" + drawn(WORD, 43),
    "pulumi": "pu" + "l-" + drawn(HEX, 40),
    "rubygems": "ruby" + "gems_" + drawn(HEX, 48),
    "clojars": "CLO" + "JARS_" + drawn(HEX, 60),
    "typeform": "tf" + "p_" + drawn(WORD, 59),
    "dynatrace": "dt0" + "c01." + drawn(UPPER, 24) + "." + drawn(UPPER, 64),
    "jwt": jwt(),
    "airtable": "pa" + "t" + drawn(ALNUM, 14) + "." + drawn(HEX, 64),
    "sonarqube": "sq" + "p_" + drawn(HEX, 40),
}

NAMED = {
    "aws secret": ("AWS_SECRET_ACCESS_KEY", drawn(BASE64, 40)),
    "azure by name": ("AZURE_CLIENT_SECRET", drawn(ALNUM + "-_.", 40)),
    "twilio auth": ("TWILIO_AUTH_TOKEN", drawn(HEX, 32)),
    "heroku": ("HEROKU_API_KEY", uuid()),
    "vercel": ("VERCEL_TOKEN", drawn(ALNUM, 24)),
    "cloudflare": ("CLOUDFLARE_API_TOKEN", drawn(WORD, 40)),
    "fastly": ("FASTLY_API_TOKEN", drawn(WORD, 32)),
    "cohere": ("COHERE_API_KEY", drawn(ALNUM, 40)),
    "mistral": ("MISTRAL_API_KEY", drawn(ALNUM, 32)),
    "okta": ("OKTA_API_TOKEN", "00" + drawn(WORD, 40)),
    "datadog": ("DD_API_KEY", drawn(HEX, 32)),
    "django": ("SECRET_KEY", drawn(ALNUM, 50)),
    "rails": ("SECRET_KEY_BASE", drawn(HEX, 128)),
    "any key": ("ACME_KEY", drawn(ALNUM, 32)),
    "password": ("DB_PASSWORD", "Tr0ub4dor-and-3"),
    "passwd": ("MYSQL_PASSWD", "kestrel7harbour"),
    "pwd": ("SMTP_PWD", "kestrel7harbour"),
    "passphrase": ("GPG_PASSPHRASE", "kestrel7harbour"),
    "camel case token": ("accessToken", drawn(ALNUM, 30)),
    "camel case secret": ("clientSecret", drawn(ALNUM, 30)),
    "header": ("X-Api-Key", drawn(ALNUM, 30)),
}

PEM_BODY = "\n".join(drawn(BASE64, 64, line) for line in range(12))


def pem(kind, block=""):
    return f"-----BEGIN {kind}PRIVATE " + f"KEY{block}-----\n{PEM_BODY}\n-----END {kind}PRIVATE " + f"KEY{block}-----"


PASSWORD = "Tr0ub4dor-and-3"

PLACED = {
    "pem rsa": ("{}", pem("RSA ")),
    "pem ec": ("{}", pem("EC ")),
    "pem pkcs8": ("{}", pem("")),
    "pem openssh": ("{}", pem("OPENSSH ")),
    "pgp": ("{}", pem("PGP ", " BLOCK")),
    "slack webhook": ("https://{}", "hooks.slack" + ".com/services/T0123ABCD/B0123ABCD/" + drawn(ALNUM, 24)),
    "discord webhook": ("https://{}", "discord" + ".com/api/webhooks/123456789012345678/" + drawn(WORD, 68)),
    "azure storage": ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};Suffix=x", drawn(BASE64, 86) + "=="),
    "azure sas": (
        "https://a.blob.example/x?sv=2024-01-01&sig={}&se=2026",
        drawn(ALNUM, 40) + "%2B" + drawn(ALNUM, 3) + "%3D",
    ),
    "bearer header": ("Authorization: Bearer {}", drawn(WORD, 40)),
    "lower case header": ("authorization: bearer {}", drawn(WORD, 40)),
    "basic header": ("Authorization: Basic {}", "dXNlcjpw" + "YXNz"),
    "token header": ("Authorization: token {}", drawn(HEX, 40)),
    "okta header": ("Authorization: SSWS {}", "00" + drawn(WORD, 40)),
    "bearer alone": ("Bearer {}", drawn(WORD, 40)),
    "cookie": ("Cookie: theme=dark; sessionid={}; lang=en", drawn(ALNUM, 32)),
    "set-cookie": ("Set-Cookie: connect.sid={}; Path=/; HttpOnly", drawn(ALNUM, 32)),
    "postgres url": ("postgres://app:{}@db.internal:5432/app", PASSWORD),
    "mysql url": ("mysql://root:{}@127.0.0.1/app", "hunter2"),
    "redis url": ("redis://:{}@cache:6379/0", PASSWORD),
    "amqp url": ("amqps://guest:{}@mq/vhost", PASSWORD),
    "mongodb url": ("mongodb+srv://app:{}@cluster0.example.net/?retryWrites=true", "p@ss-w0rd"),
    "url, slash in password": ("mysql://app:{}@db/app", "pa/ss-w0rd"),
    "https url": ("https://deploy:{}@git.example/x.git", drawn(ALNUM, 20)),
    "https url, token only": ("https://{}@git.example/x.git", drawn(ALNUM, 40)),
    "long flag": ("tool --password={} --verbose", PASSWORD),
    "long flag, space": ("tool --api-key {} --verbose", drawn(ALNUM, 32)),
    "curl user": ("curl -s -u admin:{} https://x.example/", PASSWORD),
    "sshpass": ("sshpass -p {} ssh host", PASSWORD),
    "mysql flag": ("mysql -u root -p{} app", PASSWORD),
    "netrc": ("machine x.example login bob password {}", PASSWORD),
    "e-mail": ("write to {} soon", "jane.roe+work" + "@" + "example.co.uk"),
    "e-mail, noreply": ("Co-Authored-By: Robot <{}>", "noreply" + "@" + "example.com"),
    "e-mail, encoded": ("https://x.example/?user={}&a=b", "jane" + "%40" + "example.com"),
    "yaml word": ("user: app\npassword: {}\nport: 1", "letmein"),
    "k8s env": ("- name: DB_PASSWORD\n  value: {}", PASSWORD),
    "python": ("client = connect(password='{}')", "letmein"),
    "typed": ('const password: string = "{}"', "letmein"),
    "xml": ("<password>{}</password>", PASSWORD),
    "table": ("| DB_PASSWORD | {} |", PASSWORD),
}

CARRIERS = {
    "bare": "{}",
    "prose": "I took {} from the vault, see?",
    "line": "first\n{}\nlast",
    "sentence": "It is {}.",
    "quoted": "'{}'",
}
NAMED_CARRIERS = {
    "prose": "The {name} is {value}, keep it.",
    "env": "A=1\n{name}={value}\nB=2",
    "quoted env": '{name}="{value}"',
    "yaml": "env:\n  {name}: {value}\n  x: 1",
    "shell": "export {name}={value} && make deploy",
    "docker": "docker run -e {name}={value} image",
    "python": "os.environ['{name}'] = '{value}'",
}


def redacted(text, home=None):
    return Redactor(home).text(text)


def seconds(text):
    began = time.process_time()
    redacted(text, home="/home/a")
    return time.process_time() - began


def assert_only_it_is_gone(before, secret, after):
    """Everything but the secret is still there, a placeholder where it stood."""
    pattern = re.escape(before).replace(re.escape(secret), "<[a-z0-9-]+-1>")

    assert secret in before
    assert re.fullmatch(pattern, after), after


def test_the_set_holds_sixty_formats():
    assert len(FORMATS) + len(NAMED) + len(PLACED) >= 60


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("name", FORMATS)
def test_format_goes_from_text(name, carrier):
    text = CARRIERS[carrier].format(FORMATS[name])

    assert_only_it_is_gone(text, FORMATS[name], redacted(text))


@pytest.mark.parametrize("name", FORMATS)
def test_format_goes_from_json_env_and_shell(name):
    secret = FORMATS[name]
    for text in (
        json.dumps({"note": f"see {secret}"}),
        json.dumps(json.dumps({"command": f"echo\n{secret}\n"})),
        f"SETTING={secret}\n",
        f"deploy --with '{secret}' && echo done",
        f"https://x.example/?a={secret}&b=1",
        f"\x1b[32m{secret}\x1b[0m",
    ):
        assert_only_it_is_gone(text, secret, redacted(text))


@pytest.mark.parametrize("carrier", NAMED_CARRIERS)
@pytest.mark.parametrize("name", NAMED)
def test_value_goes_by_its_name(name, carrier):
    label, value = NAMED[name]
    text = NAMED_CARRIERS[carrier].format(name=label, value=value)

    assert_only_it_is_gone(text, value, redacted(text))


@pytest.mark.parametrize("name", NAMED)
def test_value_goes_by_its_name_in_json(name):
    label, value = NAMED[name]
    for text in (json.dumps({label: value}), json.dumps(json.dumps({label: value, "b": 1}))):
        assert_only_it_is_gone(text, value, redacted(text))
    assert Redactor(None).json({"env": {label: value}})["env"][label] != value


@pytest.mark.parametrize("name", PLACED)
def test_secret_goes_from_its_place(name):
    template, secret = PLACED[name]
    text = template.format(secret)
    for carried in (text, f"first\n{text}\nlast"):
        assert_only_it_is_gone(carried, secret, redacted(carried))

    inside = json.dumps({"output": f"first\n{text}\nlast"})
    assert_only_it_is_gone(inside, json.dumps(secret)[1:-1], redacted(inside))


@pytest.mark.parametrize(
    "text",
    [
        f"curl -H 'Authorization: Bearer {PASSWORD}' https://x.example",
        f'curl -H "Authorization: Basic {PASSWORD}" https://x.example',
        f'{{"headers": {{"Authorization": "Bearer {PASSWORD}"}}}}',
        f"headers={{'Authorization': 'token {PASSWORD}'}}",
        f"PGPASSWORD={PASSWORD} psql",
        f"The password is `{PASSWORD}`.",
        f"**Password:** {PASSWORD}",
        f'{{"name": "DB_PASSWORD", "value": "{PASSWORD}"}}',
        f'["mysql", "--password", "{PASSWORD}"]',
    ],
)
def test_password_goes(text):
    assert_only_it_is_gone(text, PASSWORD, redacted(text))


@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("before", ["", "    ", "     2→", "+"])
def test_private_key_that_was_cut_off_goes(lines, before):
    body = PEM_BODY.split("\n")[:lines]
    text = "head -3 key\n-----BEGIN RSA PRIVATE " + "KEY-----\n" + "\n".join(before + line for line in body)

    after = redacted(text + "\nThe file goes on, I did not read it.")

    assert after == "head -3 key\n<private-key-1>\nThe file goes on, I did not read it."


PICTURE = "data:image/png;base64," + drawn(BASE64, 20_000) + "=="
HARMLESS = [
    drawn(HEX, 40),
    f"commit {drawn(HEX, 40)}\nMerge: {drawn(HEX, 7)} {drawn(HEX, 7, 1)}",
    f"sha256:{drawn(HEX, 64)}",
    uuid(),
    f"claude --resume {uuid()}",
    PICTURE,
    json.dumps({"type": "base64", "media_type": "image/png", "data": drawn(BASE64, 20_000)}),
    json.dumps({"signature": drawn(BASE64, 600) + "==", "encrypted_content": drawn(WORD, 600)}),
    f'"integrity": "sha512-{drawn(BASE64, 86)}=="',
    f'"integrity": "sha1-{drawn(BASE64, 27)}="',
    f"pip==24.0 --hash=sha256:{drawn(HEX, 64)}",
    f'checksum = "{drawn(HEX, 64)}"',
    f"github.com/x/y v1.2.3 h1:{drawn(BASE64, 43)}=",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(BASE64, 43) + " me",
    "SSH_PUBLIC_KEY=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(BASE64, 43),
    "-----BEGIN PUBLIC KEY-----\n" + PEM_BODY + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + PEM_BODY + "\n-----END CERTIFICATE-----",
    'if "-----BEGIN RSA PRIVATE ' + 'KEY-----" in text or "-----END RSA PRIVATE ' + 'KEY-----" in text:',
    "password = input()",
    "password = getpass.getpass('Password: ')",
    "def login(user: str, password: str) -> Token:",
    "def login(user, password=None, token=token, secret=self.secret): ...",
    "interface Login { password: string; token: string; secret?: string }",
    "type Config struct { Password string; APIKey string }",
    "token: string\npassword: string\n",
    "connect(password=password, token=args.token, api_key=config.api_key)",
    "const token = await getToken(user, 'session')",
    "const apiKey = process.env.OPENAI_API_KEY",
    'key = os.environ["API_KEY"]',
    'os.getenv("API_KEY", "")',
    'CONF_PASSWORD = "password"\nCONF_API_KEY = "api_key"\nACCESS_TOKEN = "access_token"',
    "PASSWORD=$DB_PASSWORD",
    'PASSWORD="${DB_PASSWORD}"',
    "set PASSWORD=%DB_PASSWORD%",
    "API_KEY: ${{ secrets.API_KEY }}",
    "GITHUB_TOKEN: ${{ github.token }}",
    "password: {{ vault_password }}",
    "password: !vault secret",
    "API_KEY=<your-key>",
    "API_KEY=your-api-key-here",
    "API_KEY=YOUR_API_KEY",
    "API_KEY=xxxxxxxxxxxxxxxx",
    "PASSWORD=changeme",
    'password: "********"',
    "sk-ant-...",
    "gh" + "p_" + "x" * 36,
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "headers = {'Authorization': f'Bearer {token}'}",
    "the Authorization header: token based or not",
    "Bearer authentication is on",
    "max_tokens=4096",
    "token_count: 12",
    '{"inputTokens": 1200, "cacheReadInputTokens": 88000, "max_tokens": 4096}',
    '"token": 123',
    "nextToken: " + drawn(ALNUM, 40),
    "jsonwebtoken: 9.0.2",
    '"jsonwebtoken": "^9.0.2-beta.12"',
    "version 1.2.3-rc.1+build.5, v20.11.0",
    "pip install scikit-learn sk-learn sk-learn-contrib-extension-pack",
    "class='sk-spinner-three-bounce-container'",
    "key-value-store-with-a-long-name",
    "STORAGE_KEY = 'user-preferences-v2'",
    "primary_key=True, foreign_key='users.id', cache_key=" + drawn(HEX, 40),
    "sessionKey: agent:main:main",
    "PWD=/srv/work\nOLDPWD=/srv",
    "SSL_KEY=/etc/ssl/private/server.key",
    "private_key: ./keys/id_ed25519",
    "tests: pass: 12, fail: 0",
    "bypass: true, compass: north1",
    "Password: required\nPassword must have 8 characters",
    '<input type="password" name="password" placeholder="Password">',
    '{"password": {"type": "string", "minLength": 8}}',
    '{"password": "Passwort", "token": "identifier"}',
    "Buffer.from(password, 'base64')",
    "http://localhost:3000/@vite/client",
    "http://localhost:8080/a?b=c@d",
    "git@github.com:owner/repo.git",
    "ssh://git@github.com/owner/repo.git",
    "npm i react@18.2.0 @types/node@20.1.0-beta.next",
    "icon@2x.png getty@tty1.service",
    "@app.route('/x') @property",
    "!function(e,t){var n=e.token||t.key;return n&&e.password===t.password?s.a9b8(n):s.b}(a,b);",
    "Set-Cookie: theme=dark; Path=/; Max-Age=3600; Domain=x.example",
    "docker run -u 1000:1000 image",
    "https://x.example/home/about and src/home/index.tsx",
    "npm run dev && cd /srv/dev",
]


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:40])
def test_what_is_no_secret_stays(text):
    redactor = Redactor("/home/dev")

    assert redactor.text(text) == text
    assert redactor.json({"output": text}) == {"output": text}
    assert redactor.summary() == "redacted: nothing"


def test_same_secret_has_the_same_placeholder():
    first, second = ("gh" + "p_" + drawn(ALNUM, 36, seed) for seed in (1, 2))
    redactor = Redactor(None)

    assert redactor.text(f"{first} {second} {first}") == "<github-token-1> <github-token-2> <github-token-1>"
    assert redactor.text(f"TOKEN={second}") == "TOKEN=<github-token-2>"
    assert redactor.counts == {"GitHub token": 4}
    assert redactor.summary() == "redacted: 4 GitHub tokens"


def test_value_once_known_goes_where_it_stands_bare():
    secret = drawn(ALNUM, 32)

    assert redacted(f"{secret}\nexport MISTRAL_API_KEY={secret}\necho {secret}!") == (
        "<secret-1>\nexport MISTRAL_API_KEY=<secret-1>\necho <secret-1>!"
    )


def test_weak_password_does_not_take_words_with_it():
    assert (
        redacted("POSTGRES_PASSWORD=postgres\nservice postgres") == "POSTGRES_PASSWORD=<password-1>\nservice postgres"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/alice/x.py", "/home/<user>/x.py"),
        ("cd /home/alice", "cd /home/<user>"),
        ("/Users/alice/x", "/Users/<user>/x"),
        (r"C:\Users\alice\x", r"C:\Users\<user>\x"),
        (r"c:\\Users\\alice\\x", r"c:\\Users\\<user>\\x"),
        ("/mnt/c/Users/alice/x", "/mnt/c/Users/<user>/x"),
        ("file:///c%3A/Users/alice/x", "file:///c%3A/Users/<user>/x"),
        ("%2Fhome%2Falice%2Fx", "%2Fhome%2F<user>%2Fx"),
        ("/backup/home/alice/x", "/backup/home/<user>/x"),
        ("~/.claude/projects/-home-alice-work", "~/.claude/projects/-home-<user>-work"),
        ("C--Users-alice-work", "C--Users-<user>-work"),
        ("--home-alice-work--", "--home-<user>-work--"),
        ("projects/home-alice-work", "projects/home-<user>-work"),
        ("alice@laptop:~$ ls ~alice", "<user>@laptop:~$ ls ~<user>"),
        ("drwxr-xr-x 2 alice alice 4096 src", "drwxr-xr-x 2 <user> <user> 4096 src"),
        ("uid=1000(alice) gid=1000(alice)", "uid=1000(<user>) gid=1000(<user>)"),
        ("USER=alice", "USER=<user>"),
        ("chown -R alice:alice /srv", "chown -R <user>:<user> /srv"),
        ("alice fell down", "alice fell down"),
        ("/home/bob/x by bob@host", "/home/<user-2>/x by <user-2>@host"),
        (r"C:\Users\Jane Roe\x", r"C:\Users\<user-2>\x"),
        ("/Users/Shared/x", "/Users/Shared/x"),
    ],
)
def test_user_name_goes_from_paths(before, after):
    assert redacted(before, home="/home/alice") == after


def test_short_user_name_stays_in_prose():
    text = "npm run dev; cat /dev/null; src/home/dev; smart-home-dev; a dev@1.2.3; /srv/dev/x"

    assert redacted(text, home="/home/dev") == text
    assert redacted("/home/dev/x dev@host", home="/home/dev") == "/home/<user>/x <user>@host"


def test_name_that_is_no_word_goes_everywhere():
    assert redacted("jane.roe says hi, -home-jane-roe-work", home="/home/jane.roe") == (
        "<user> says hi, -home-<user>-work"
    )


def test_user_may_be_given_by_name():
    assert Redactor("/data/people/dev", "dev").text("/data/people/dev/x /srv/dev") == "/data/people/<user>/x /srv/dev"
    assert Redactor(None, "alice").text("alice@host") == "<user>@host"
    assert Redactor("/root", "root").text("root@host") == "root@host"


def test_session_is_redacted_whole():
    token, password = FORMATS["github classic"], drawn(ALNUM, 16)
    session = Session(
        agent="claude",
        session_id=uuid(),
        title=f"Use {token}",
        created_at=NOW,
        updated_at=NOW,
        turn_count=1,
        message_count=1,
        cwd="/home/bob/work",
        path="/home/bob/.claude/projects/-home-bob-work/a.jsonl",
        git_branch=f"try-{token}",
        messages=(
            Message("user", f"what is {password}? ask bob@host"),
            Message(
                "assistant",
                f"{token}",
                timestamp=NOW,
                thinking=f"hm, {token}",
                tool_calls=(
                    ToolCall("1", "Bash", {"env": {"DB_PASSWORD": password, token: 1}, "pin": 7}, output=f"is {token}"),
                    ToolCall(
                        "2", "Http", {"headers": {"Authorization": f"Bearer {password}", "Cookie": f"sid={password}"}}
                    ),
                    ToolCall("3", "Run", {"argv": ["tool", "--token", password], "password": 12345678}),
                ),
                attachments=(Attachment("image", "image/png", f"{token}.png"),),
            ),
            Message("tool", f"{token}", tool_result=ToolResult("1", "Bash", f"{token} {password}")),
        ),
        raw=[{"deep": [{"/home/bob/x": token}], "image": PICTURE, "n": 1, "t": None, "password": password}],
        based_on=("/home/bob/kept",),
    )
    redactor = Redactor("/home/alice")

    after = redactor.session(session)

    shown = repr(after).replace("/home/bob/kept", "")
    assert token not in shown
    assert password not in shown
    assert "12345678" not in shown
    assert "bob" not in shown
    assert after.session_id == session.session_id
    assert after.created_at == NOW
    assert after.based_on == session.based_on
    assert after.cwd == "/home/<user-2>/work"
    assert after.path == "/home/<user-2>/.claude/projects/-home-<user-2>-work/a.jsonl"
    assert after.messages[0].content == "what is <password-1>? ask <user-2>@host"
    assert after.messages[1].tool_calls[0].input == {
        "env": {"DB_PASSWORD": "<password-1>", "<github-token-1>": 1},
        "pin": 7,
    }
    assert after.messages[1].tool_calls[1].input["headers"]["Authorization"] == "Bearer <password-1>"
    assert after.raw[0]["deep"] == [{"/home/<user-2>/x": "<github-token-1>"}]
    assert after.raw[0]["image"] == PICTURE
    assert session.raw[0]["password"] == password
    assert redactor.session(after) == after


def test_snippet_of_a_hit_loses_its_marks_with_its_text():
    hit = SearchHit(
        agent="claude", session_id="1", title="", created_at=NOW, updated_at=NOW, turn_count=0, message_count=0,
        relevance_score=1.0, match_count=1,
        snippet=Snippet(text=f"a {FORMATS['npm']} b", matches=(Match(start=0, end=1),)),
    )  # fmt: skip

    assert Redactor(None).session(hit).snippet == Snippet(text="a <npm-token-1> b")


def test_json_deeper_than_calls_may_nest_is_redacted():
    value = {"password": "letmein"}
    for _ in range(5000):
        value = [value]

    found = Redactor(None).json(value)
    while isinstance(found, list):
        found = found[0]

    assert found == {"password": "<password-1>"}


def test_redacted_text_stays_as_it_is():
    pieces = [*FORMATS.values(), *(f"{name}={value}" for name, value in NAMED.values())]
    pieces += [template.format(secret) for template, secret in PLACED.values()]
    pieces += [
        *(text for text in HARMLESS if len(text) < 500),
        "/home/bob/x",
        "-home-bob-x",
        '"',
        "\\n",
        ": ",
        "=",
        "<",
        "@",
    ]
    lot = random.Random(1)
    for _ in range(300):
        text = lot.choice([" ", "\n", "; ", ", ", " = ", '"']).join(lot.choices(pieces, k=8))
        once = Redactor("/home/alice")
        after = once.text(text)

        assert once.text(after) == after
        assert redacted(after) == after


HOSTILE = [
    "a", "-", ".", "@", "/", "\\", '"', "=", "<", ":", " ", "\n", "x.", "a@", "a.a@", "a@a.", "://", "://a:", "://a:b@",
    "://a:@@", "sk-", "sk-a1", "eyJ", "eyJa.", "key", "key=", "token:", "token: a", "password=\\", 'password="', "password: '\\",
    "pass", "--", "--a-", "--password ", "-----", "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----\n",
    "-----BEGIN PRIVATE " + "KEY-----\nAAAAAAAAAAAAAAAA1", "curl ", "curl -u ", "curl -u a:", "mysql ", "docker login ", "cookie: ",
    "cookie: a=", "a=b;", "authorization: ", "Bearer ", "login a password ", "/home/", "/home/a", "-home-", "-home-a-",
    "C:\\Users\\a b", "1:", "12345678:", "M", "0a", "value", "key value", "is ", "token is ", "ab1-", "rwxr-xr-x 1 ", "a1.b2.", "-eyJ", "-sk-", "\\n",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_linear_time(unit):
    assert seconds(unit * (100_000 // len(unit))) < 4  # a quadratic pattern takes 10 and more


def test_hostile_megabyte_takes_seconds():
    assert seconds("".join(unit * (16_000 // len(unit)) for unit in HOSTILE)) < 20


@pytest.mark.parametrize(("prefix", "rest"), [(prefix, rest) for prefix, _, rest in redact._BY_PREFIX])
def test_every_format_takes_linear_time(prefix, rest):
    for unit in (prefix, f"-{prefix}", f" {prefix}a", f"{prefix}1."):
        text = unit * (200_000 // len(unit))
        began = time.process_time()
        redact._prefixed(prefix, rest).sub("", text)

        assert time.process_time() - began < 4


def test_hostile_numbers_of_names_and_values_take_linear_time():
    assert seconds(" ".join(f"/home/u{n}/x" for n in range(20_000))) < 10
    assert seconds("\n".join(f"PASSWORD=same-word-{n}" for n in range(20_000))) < 10


def test_ten_megabytes_take_seconds():
    line = 'The token count is 12; see /home/alice/work/app.py, "key": "value" and mail me@example.com about it.\n'

    assert seconds(line * (10_000_000 // len(line))) < 30
