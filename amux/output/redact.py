"""Secrets out of a session before it is shared.

The rules are our own: detect-secrets brings requests and PyYAML, knows a third of these formats and reports lines, where
redaction needs the exact span in JSON and prose alike.

Secrets are found by their format (`ghp_…`), by where they stand (a URL, a header, a flag) or by the name they are given
(`DB_PASSWORD=…`). What a name or place gave away is then replaced where it stands bare as well. Every pattern runs in
time linear in the text: repetitions are possessive or bounded, and begin at a literal or at a boundary.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from amux.model import Json, SessionSummary, Snippet

AnySession = TypeVar("AnySession", bound=SessionSummary)

MAX_LEARNED = 50
"""User names learned from paths, and values that share a word: what is more frequent is no name and no secret."""

_WORD = r"[\w-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

# Kind, the literals it begins with, what follows. The more special stands first: `sk-ant-` is also an `sk-`.
_PREFIXED = (
    ("Anthropic key", "sk-ant-", f"{_WORD}{{16,}}"),
    ("OpenRouter key", "sk-or-", f"{_WORD}{{20,}}"),
    ("Langfuse key", "sk-lf-", _UUID),
    ("OpenAI key", "sk-proj- sk-svcacct- sk-admin- sk-None-", f"{_WORD}{{20,}}"),
    ("API key", "sk-", rf"(?=[A-Za-z]*\d){_ALNUM}{{20}}{_WORD}*"),
    ("API key", "sk-", rf"(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z]){_WORD}{{24,}}"),
    ("API key", "sk_", f"{_HEX}{{40,}}"),
    ("Google key", "AIza", f"{_WORD}{{35}}(?!{_WORD})"),
    ("Google key", "AQ.Ab", f"{_WORD}{{30,}}"),
    ("Google token", "ya29. 1//0", rf"[\w.-]{{20,}}"),
    ("Google client secret", "GOCSPX-", f"{_WORD}{{20,}}"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{20,}"),
    ("GitLab token", "glpat- glptt- gldt- glrt- glcbt- glft- glimt- glsoat- gloas- glagent-", r"[\w.-]{16,}"),
    ("GitLab token", "GR1348941", f"{_WORD}{{20}}"),
    ("Slack token", "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w.-]{10,}"),
    ("Slack webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[\w/-]{20,}"),
    ("Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{6,}/[\w-]{20,}"),
    ("Teams webhook", "webhook.office.com/webhookb2/", r"[\w@/-]{36,}"),
    ("AWS key", "AKIA ASIA ABIA ACCA", "[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_", f"{_ALNUM}{{10,}}"),
    ("webhook secret", "whsec_", r"[\w+/=-]{20,}"),
    ("Twilio key", "SK AC", f"{_HEX}{{32}}(?!{_WORD})"),
    ("SendGrid key", "SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    ("Mailgun key", "key-", f"{_HEX}{{32}}(?!{_ALNUM})"),
    ("Brevo key", "xkeysib-", f"{_WORD}{{40,}}"),
    ("Resend key", "re_", r"[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}"),
    ("npm token", "npm_", f"{_ALNUM}{{30,}}"),
    ("PyPI token", "pypi-", f"{_WORD}{{50,}}"),
    ("RubyGems key", "rubygems_", f"{_HEX}{{40,}}"),
    ("Clojars token", "CLOJARS_", f"{_ALNUM}{{50,}}"),
    ("crates.io token", "cio", f"{_ALNUM}{{32}}(?!{_WORD})"),
    ("NuGet key", "oy2", r"[a-z0-9]{43}(?![\w-])"),
    ("Artifactory token", "AKCp", f"{_ALNUM}{{60,}}"),
    ("Docker token", "dckr_pat_ dckr_oat_", f"{_WORD}{{20,}}"),
    ("Vault token", "hvs. hvb. hvr.", f"{_WORD}{{20,}}"),
    ("Databricks token", "dapi", f"{_HEX}{{32}}(?:-\\d)?(?!{_ALNUM})"),
    ("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{40,}}"),
    ("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{30,}"),
    ("Hugging Face token", "hf_ api_org_", f"{_ALNUM}{{30,}}"),
    ("Linear key", "lin_api_ lin_oauth_", f"{_ALNUM}{{30,}}"),
    ("Notion token", "ntn_", f"{_ALNUM}{{40,}}"),
    ("Notion token", "secret_", rf"(?=[A-Za-z]*\d){_ALNUM}{{40,}}"),
    ("New Relic key", "NRAK- NRII- NRJS- NRRA-", f"{_WORD}{{19,}}"),
    ("Grafana token", "glsa_ glc_", r"[\w+/=-]{32,}"),
    ("Grafana token", "eyJrIjoi", r"[\w+/=-]{40,}"),
    ("Sentry token", "sntrys_ sntryu_", r"[\w+/=-]{40,}"),
    ("Shopify token", "shpat_ shpca_ shppa_ shpss_ shptka_", f"{_ALNUM}{{30,}}"),
    ("Square token", "sq0atp- sq0csp- sq0idp- sq0ids-", f"{_WORD}{{20,}}"),
    ("Square token", "EAAA", f"{_WORD}{{60}}(?!{_WORD})"),
    ("Supabase key", "sbp_ sb_secret_", r"\w{20,}"),
    ("Groq key", "gsk_", f"{_ALNUM}{{20,}}"),
    ("Replicate token", "r8_", f"{_ALNUM}{{30,}}"),
    ("xAI key", "xai-", f"{_WORD}{{40,}}"),
    ("Perplexity key", "pplx-", f"{_ALNUM}{{30,}}"),
    ("NVIDIA key", "nvapi-", f"{_WORD}{{40,}}"),
    ("Cerebras key", "csk-", f"{_ALNUM}{{40,}}"),
    ("Together key", "tgp_v1_", f"{_WORD}{{30,}}"),
    ("Fireworks key", "fw_", f"{_ALNUM}{{22,24}}(?!{_WORD})"),
    ("Jina key", "jina_", f"{_WORD}{{40,}}"),
    ("Tavily key", "tvly-", f"{_WORD}{{20,}}"),
    ("Pinecone key", "pcsk_", r"\w{40,}"),
    ("LangSmith key", "lsv2_pt_ lsv2_sk_", r"\w{30,}"),
    ("age key", "AGE-SECRET-KEY-1 age-secret-key-1", f"{_ALNUM}{{20,}}"),
    ("Tailscale key", "tskey-", f"{_WORD}{{16,}}"),
    ("1Password token", "ops_eyJ", r"[\w+/=-]{40,}"),
    ("Atlassian token", "ATATT3 ATCTT3", r"[\w=-]{40,}"),
    ("Bitbucket password", "ATBB", r"(?=[A-Za-z]*\d)\w{28,}"),
    ("Figma token", "figd_ figo_ figu_", f"{_WORD}{{30,}}"),
    ("Postman key", "PMAK-", f"{_WORD}{{40,}}"),
    ("PlanetScale token", "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_secret_", r"[\w.=-]{30,}"),
    ("Pulumi token", "pul-", f"{_HEX}{{40}}"),
    ("Typeform token", "tfp_", r"[\w.-]{30,}"),
    ("Dynatrace token", "dt0c01. dt0s01. dt0s02. dt0s08.", r"[A-Z0-9]{8,}\.[A-Z0-9]{40,}"),
    ("Airtable token", "pat", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    ("Netlify token", "nfp_", f"{_ALNUM}{{30,}}"),
    ("Render key", "rnd_", f"{_ALNUM}{{28,}}"),
    ("Neon key", "napi_", f"{_ALNUM}{{40,}}"),
    ("Fly.io token", "FlyV1 fo1_", r" ?[\w+/=,-]{40,}"),
    ("Contentful token", "CFPAT-", f"{_WORD}{{40,}}"),
    ("EasyPost key", "EZAK EZTK", f"{_ALNUM}{{54}}(?!{_WORD})"),
    ("Shippo token", "shippo_live_ shippo_test_", f"{_HEX}{{40}}"),
    ("Duffel token", "duffel_live_ duffel_test_", f"{_WORD}{{40,}}"),
    ("Plaid token", "access-sandbox- access-development- access-production-", _UUID),
    ("SonarQube token", "sqp_ squ_ sqa_", f"{_HEX}{{40}}"),
    ("CircleCI token", "CCIPAT_", r"\w{40,}"),
    ("Buildkite token", "bkua_", f"{_HEX}{{40}}"),
)

# Kind, a literal that must occur in the text for the pattern to be worth a try, the pattern.
_SHAPED = (
    ("JWT", "eyJ", r"eyJ{edge3}[\w-]{{8,}}+\.[\w-]{{8,}}+(?:\.[\w-]*+){{1,3}}+"),
    ("Discord token", ".", r"[MNO]{edge1}[\w-]{{23,27}}\.[\w-]{{6,7}}\.[\w-]{{27,}}+"),
    ("Telegram token", ":", r"\d(?<!\d.)\d{{7,11}}+:(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{{35}}(?![\w-])"),
    ("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{edge1}[A-Za-z0-9]{{13}}\.atlasv1\.[\w=-]{{40,}}+"),
    ("Mailchimp key", "-us", r"[0-9a-f]{edge1}[0-9a-f]{{31}}-us\d{{1,2}}(?![\w-])"),
    ("Mailgun key", "-", r"[0-9a-f]{edge1}[0-9a-f]{{31}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}(?![\w-])"),
    ("Azure client secret", "Q~", r"[\w~.-](?<![\w~.-].)[\w~.-]{{2}}\dQ~[\w~.-]{{30,}}+"),
)

_PEM = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"(?P<body>(?:[^-]|-(?!---))*+(?=-{4,5} ?END)"
    # Cut off: only lines that are base64, whatever stands before each (line numbers, quotes, `\n` written out).
    r"|(?:[^A-Za-z+/=]{0,16}(?:\\+[nr]|\s)[^A-Za-z+/=]{0,16}[A-Za-z0-9+/=]{16,}+)*+)"
    r"(?:-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5})?"
)
_PEM_CONTENT = re.compile(r"(?=[A-Za-z+/]{0,80}\d)[A-Za-z0-9+/]{12}")

_URL_LOGIN = re.compile(
    r"""://(?P<lead>[^\s/:@"'`<>\\]{0,128}+:)(?!\d{1,5}(?:[/?#\s"'`)\\]|$))"""
    r"""(?P<value>(?:[^\s"'`<>\\@]|@(?=[^\s"'`<>\\@/,;]{0,128}@)){1,256}+)(?=@)"""
)
_URL_USER = re.compile(r"://(?P<lead>)(?P<value>(?=[\w-]{0,64}\d)(?=[\w-]{0,64}[A-Za-z])[\w-]{20,256}+)(?=@)", re.ASCII)
_URL_SIGNATURE = re.compile(
    r"(?i:[?&;](?P<lead>sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|key|code)=)"
    r"(?P<value>(?=[\w%+/=.~-]{0,256}\d)[\w%+/=.~-]{20,}+)",
    re.ASCII,
)

_AUTHORIZATION = re.compile(
    r"""(?i:(?P<lead>authorization["'\\\])]{0,6}+[ \t]{0,4}+[:=,][ \t]{0,4}+[fbru]?["'\\`]{0,6}+"""
    r"""(?:(?P<scheme>bearer|basic|token|apikey|api-key|key|ssws|bot|negotiate|splunk|genie-?key)[ \t]{1,4}+)?"""
    r"""|\bbearer[ \t]{1,4}+))(?P<value>[^\s"'`<>\\,;]{6,}+)(?P<closed>["'`\\]|[ \t]*(?:$|[\r\n]))?"""
)
_COOKIES = re.compile(
    r"""(?P<lead>(?i:cookie)["'\\\])]{0,4}+[ \t]?[:=][ \t]?["'`\\]{0,4}+|\s(?:-b|--cookie)[ =]["'])"""
    r"""(?P<value>[^\r\n"'`\\]{4,})"""
)
_COOKIE = re.compile(r"(?P<lead>(?<![^\s;])(?P<name>[^\s=;]{1,128}+)=)(?P<value>[^\s;<>]{6,}+)")
_COOKIE_ATTRIBUTE = re.compile(r"(?i:path|domain|expires|max-age|samesite|version|priority)$")
_COOKIE_OF_SESSION = re.compile(r"(?i:sess|sid|token|auth|jwt|csrf|xsrf|secret|login|remember|key|ticket)")
_DOCKER_AUTH = re.compile(
    r"""(?P<lead>["']auth\\*["'][ \t]?:[ \t]?\\*["'])"""
    r"""(?P<value>(?=[^"'\\]{0,80}[A-Z])(?=[^"'\\]{0,80}[a-z])(?:[A-Za-z0-9+/]{4}){2,}+[A-Za-z0-9+/]{0,3}={0,2})(?=\\*["'])"""
)
_NETRC = re.compile(r"(?P<lead>\blogin\s{1,20}+\S{1,128}+\s{1,20}+password\s{1,20}+)(?P<value>[^\s\"'<>\\]{3,}+)")
_COMMANDS = re.compile(
    r"""(?P<lead>\bcurl\b[^|;]{0,500}?\s(?:-u|--user|--proxy-user|-U)[ =]?\\?["']?[^\s:"'$]{1,128}+:"""
    r"""|\bsshpass\s+-p\s?|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,200}?\s-p"""
    r"""|\bredis-cli\b[^\n|;]{0,200}?\s-a\s|\bdocker\slogin\b[^\n|;]{0,200}?\s-p\s|\s-pass(?:in|out)?\spass:)"""
    r"""\\?["']?(?P<value>[^\s"'`<>\\|;]{3,}+)"""
)

_PASSWORD_NAMES = (
    r"""(?i:pass(?:word|wd|wort|phrase|code)|pwd|(?<=[_-])pass|(?<=["'])pass(?=["'\\]))|(?<=[a-z])Pass|(?<![a-z])PASS"""
)
_SECRET_NAMES = (
    r"(?i:secret|(?<!next)(?<!page)(?<!next[_-])(?<!page[_-])token|credential|(?<=[ _])auth"
    r"|(?:access|account|admin|anon|api|app|application|auth|client|deploy|encryption|hmac|integration|jwt|license|master"
    r"|private|secret|security|service|role|shared|signing|ssh|subscription|webhook|write)[_ -]?key)"
)
_NAMED = re.compile(
    rf"(?:(?P<password>{_PASSWORD_NAMES})|(?P<secret>{_SECRET_NAMES})|(?P<key>(?<=[A-Z0-9]_)KEY))"
    r"(?i:[_-]?(?:base|value|prod|production|staging|dev|test|live|old|new|v?\d{1,3}))?"
    r"""(?P<sep>["'`\])\\*]{0,6}+[ \t]{0,20}+(?:"""
    r"""(?P<weak>\|(?=[ \t])|,(?=[ \t"'\\])|(?<=[ \t])(?:is|was)(?=[ \t:])|>)"""
    r"""|(?:(?::|(?<=[ \t]))[ \t]{0,4}+[\w.\[\]]{1,30}+[ \t]{0,4}+)?=|[:!=]?={1,3}>?|:(?!:)"""
    r"""|,?\s{0,60}+["'\\-]{0,4}+value["'\\]{0,4}+[ \t]{0,4}+[:=])"""
    r"""\*{0,2}+[ \t]{0,20}+[fbruFBRU]?(?=["'`\\]|[^"'`\\]))(?P<quote>\\{0,7}["'`])?"""
    r"""(?=(?P<value>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\\\r\n])){3,256}+|[^\s"'`<>\\]{3,256}+)))"""
)
_FLAG = re.compile(
    rf"(?<![\w-])--?(?:[a-zA-Z0-9]{{1,20}}-){{0,4}}(?:(?P<password>{_PASSWORD_NAMES})|(?P<secret>{_SECRET_NAMES}))"
    r"""(?P<sep>=|[ \t]{1,8}+|["'],[ \t]?(?=["']))(?P<quote>\\{0,7}["'])?(?![-$])(?=(?P<value>[^\s"'`<>\\]{3,256}+))"""
)
_NAME = re.compile(rf"(?:(?P<password>{_PASSWORD_NAMES})|(?P<secret>{_SECRET_NAMES})|(?P<key>(?<=[A-Z0-9]_)KEY))$")
_REST = re.compile(r"""[^\s"'`<>\\;,&|(){}\[\]]*+""")

_DUMMY = re.compile(
    r"(?i:x{6}|\*{3}|^[x*.•…_0-]+$|^<|\.\.\.|^…|^your?[-_ ]|[-_ ]your[-_ ]|^your|[-_]here$|^change[-_]?(?:me|this|it)"
    r"|^replace[-_]?|^insert[-_]|^example|^placeholder|^dummy|^redacted|^\[?(?:redacted|hidden|masked|filtered)|^todo)"
)
_REFERENCE = re.compile(
    r"""\$[A-Za-z_{(\[]|[%&*]\w|[{(\[#]|%[({]|![A-Za-z]+$|[a-z][a-z0-9+.-]*://|arn:|ssh-|ecdsa-|os\.|process\.|env\."""
    r"""|[~^>=<v]*\d+\.\d+(?:\.\d|$)|(?i:none|null|nil|true|false|undefined|string|optional|required|unknown)\b"""
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@+ /\\-]*")
_NAME_AS_VALUE = re.compile(
    r"(?:[A-Za-z]{1,16}[_.-])*(?i:pass(?:word|wd|phrase)?|pwd|token|secret|key|credential)s?"
    r"|[a-z]+(?:[A-Z][a-z]+)*(?:Password|Token|Secret|Key)"
)
_CODE_VALUE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|\?\.)[A-Za-z_]\w*)+|\w+\(.*")
_TYPE_WORD = re.compile(
    r"(?i:str|bytes|text|any|bool|boolean|number|integer|object|field|value|input|data|varchar|char|hidden|incorrect"
    r"|invalid|missing|password|passwort|secret|token|option|prompt|empty|default|disabled|enabled|plain)$"
)
_EMAIL = re.compile(
    # `\n` may be written out before an address; the `n` is no part of it.
    r"(?<![\w.+-])(?:(?<=\\)[nrt])?(?P<value>(?!git@)[\w+-]++(?:\.[\w+-]++)*+(?:@|%40)(?!v?\d+\.\d)(?:[^\W_](?:[\w-]*+)\.)++"
    r"(?P<tld>[^\W\d_]{2,24}+)(?![\w-]))"
)
_NO_TLD = frozenset(
    "png jpg jpeg gif svg webp avif js mjs cjs ts tsx jsx css scss json html xml toml yaml yml lock txt whl gz zip exe dll "
    "service socket timer target mount scope slice".split()
)

_SEPARATOR = r"(?:[/\\]{1,4}|%2[Ff]|%5[Cc])"
_USER = r"[\w@+-]++(?:\.[\w@+-]++)*+"
_HOME = re.compile(
    r"(?P<lead>(?:(?<![\w.~-])|(?<=%3[Aa])|(?<=[/\\][A-Za-z])|(?<=/var)|(?<=/Data)|(?<=\\[nrt]))"
    rf"(?:{_SEPARATOR}home|{_SEPARATOR}[Uu]sers){_SEPARATOR})"
    rf"(?P<user>(?<=\\)[\w.-]{{1,30}}(?: [\w.-]{{1,30}}){{1,2}}(?=\\)|{_USER})"
)
_ENCODED_HOME = re.compile(r"(?P<lead>(?<![\w-])(?:-|[A-Z]--)(?:home|Users)-)(?P<user>[A-Za-z0-9]++)(?=-)")
_NOT_USERS = frozenset({"shared", "public", "default", "all", "root", "linuxbrew"})
_WORDS = re.compile(r"(?:\\[nrt])?(\w+)")


@cache
def _edge(width: int) -> str:
    """Asserts, `width` characters into a match, that it began at an edge.

    An edge also is what looks like a letter but belongs to an escape before it: `\\n`, `\\u0022`, `%3D`, a colour code.
    """
    skip = "." * width
    escapes = (r"\\[nrtbf]", r"\\u[0-9a-fA-F]{4}", "%[0-9A-Fa-f]{2}", r"[0-9;\[]m")
    return f"(?:(?<![A-Za-z0-9]{skip})" + "".join(f"|(?<={escape}{skip})" for escape in escapes) + ")"


@cache
def _prefixed(prefix: str, rest: str) -> re.Pattern[str]:
    # Compiled when first needed, and with the literal first: so the search skips what cannot match.
    return re.compile(f"{re.escape(prefix)}{_edge(len(prefix))}{rest}", re.ASCII | re.DOTALL)


@cache
def _shaped(template: str) -> re.Pattern[str]:
    return re.compile(template.format(edge1=_edge(1), edge3=_edge(3)), re.ASCII | re.DOTALL)


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _random(value: str) -> bool:
    """Whether it looks drawn by lot, not named: one long part of letters and digits, or all kinds of characters."""
    if any(len(part) >= 12 and _mixed(part) for part in re.split(r"[-_.:/\s]", value)):
        return True
    return len(value) >= 16 and _mixed(value) and value.lower() != value != value.upper()


def _is_path(value: str) -> bool:
    return bool(_PATH.fullmatch(value)) and not any(
        len(part) >= 12 and _mixed(part) and part.lower() != part for part in re.split(r"[/\\]", value)
    )


def _is_no_secret(value: str) -> bool:
    return bool(_DUMMY.search(value) or _REFERENCE.match(value)) or _is_path(value)


def _is_password(value: str, *, quoted: bool, shell: bool) -> bool:
    if shell or _mixed(value) or re.search(r"[!@#$%^&*+=?~].", value):
        return len(value) >= (4 if quoted or shell else 6)
    word = value.isalpha() and value[1:].islower() and (value[0].isupper() or _TYPE_WORD.match(value))
    return quoted and len(value) >= 4 and not word


def _is_secret(kind: str, value: str, *, quoted: bool, shell: bool) -> bool:
    """Whether a value is one, given what kind of name it has; `shell`: written as in a shell or a .env file."""
    if _is_no_secret(value) or (not shell and _NAME_AS_VALUE.fullmatch(value)):
        return False
    if re.search(r"\s", value):
        return kind == "passphrase"
    if not quoted and not shell and _CODE_VALUE.fullmatch(value):
        return False
    if kind in ("password", "passphrase"):
        return _is_password(value, quoted=quoted, shell=shell)
    if kind == "key" or not (quoted or shell):
        return _random(value)
    return len(value) >= 8 and (shell or _mixed(value) or (len(value) >= 20 and value.lower() != value))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('s') else 's'}"


class Redactor:
    """Replaces secrets by placeholders, the same secret always by the same one; made once for all that is shared.

    `home` is the home directory the sessions come from, `user` a user name besides the one in it. `counts` says how many
    places were replaced, by kind.
    """

    def __init__(self, home: str | None = None, user: str | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._found: dict[str, tuple[str, str]] = {}
        self._numbers: Counter[str] = Counter()
        self._bare: dict[str, list[tuple[str, str]]] = {}
        self._users: dict[str, str] = {}
        self._places: re.Pattern[str] | None = None
        self._keys: dict[str, str] = {}
        own = _HOME.search(home) if home else None
        for name in (user, own["user"] if own else None):
            if name:
                self._user(name)

    def summary(self) -> str:
        """One line that says what was replaced."""
        return "redacted: " + (", ".join(_plural(count, kind) for kind, count in self.counts.items()) or "nothing")

    def text(self, text: str) -> str:
        """The text without its secrets; a text already redacted stays as it is."""
        return self._recalled(self._searched(text))

    def json(self, value: Json) -> Json:
        """A copy of a JSON value without its secrets, in keys too; a value under a name like `password` is one."""
        return self._walked(value, self.text, self._member)

    def session(self, session: AnySession) -> AnySession:
        """The session (or search hit) without its secrets, raw records included."""
        searched = self._fields(session, self.text, self._member)
        # Once more for what stood bare before it was known: a printed password, a user name out of its path.
        result: AnySession = self._fields(searched, self._recalled, lambda _, value: self._recalled(value))
        return result

    # -- values

    def _fields(self, value: Any, change: Callable[[str], str], member: Callable[[str, str], str]) -> Any:
        """A dataclass with every text in its shown fields changed."""
        shown = {f.name: getattr(value, f.name) for f in fields(value) if not f.metadata.get("internal")}
        changed = {
            name: tuple(
                self._fields(item, change, member) if is_dataclass(item) else self._walked(item, change, member)
                for item in old
            )
            if isinstance(old, tuple)
            else self._fields(old, change, member)
            if is_dataclass(old)
            else self._walked(old, change, member)
            for name, old in shown.items()
        }
        if isinstance(value, Snippet) and changed["text"] != value.text:
            changed["matches"] = ()  # they are offsets into the old text
        return replace(value, **changed)

    def _walked(self, value: Json, change: Callable[[str], str], member: Callable[[str, str], str]) -> Json:
        # A stack, not recursion: foreign JSON nests deeper than Python calls may.
        top: list[Any] = [value]
        boxes: list[dict[str, Any] | list[Any]] = [top]
        while boxes:
            box = boxes.pop()
            for at, name, item in _entries(box):
                new = item
                if isinstance(item, str):
                    new = member(name, item) if name else change(item)
                elif isinstance(item, dict):
                    new = {self._key(key, change): inner for key, inner in item.items()}
                    boxes.append(new)
                elif isinstance(item, list):
                    new = list(item)
                    boxes.append(new)
                elif name and isinstance(item, int) and not isinstance(item, bool):
                    redacted = member(name, str(item))
                    new = item if redacted == str(item) else redacted
                box[at] = new  # type: ignore[index,call-overload]
        return top[0]

    def _key(self, key: Any, change: Callable[[str], str]) -> Any:
        if not isinstance(key, str):
            return key
        if key not in self._keys or change != self.text:
            self._keys[key] = change(key)
        return self._keys[key]

    def _member(self, name: str, value: str) -> str:
        """The text of a value that has a name."""
        lowered = name.lower()
        if lowered.endswith(("authorization", "cookie")) or (lowered == "auth" and len(value) < 4096):
            lead = f'"{name}": "'
            return self._recalled(self._searched(f'{lead}{value}"')[len(lead) : -1])
        text = self.text(value)
        named = _NAME.search(name)
        if text == value and named and _is_secret(_kind(named), value, quoted=True, shell=False):
            return self._placeholder(_kind(named), value)
        return text

    # -- texts

    def _searched(self, text: str) -> str:
        if len(text) < 6:
            return text
        if "PRIVATE KEY" in text:
            text = _PEM.sub(self._pem, text)
        text = self._formats(text)
        if "://" in text:
            text = self._valued(_URL_LOGIN, "password", text)
            text = self._valued(_URL_USER, "password", text)
        if "=" in text:
            text = self._valued(_URL_SIGNATURE, "secret", text)
        text = _AUTHORIZATION.sub(self._authorization, text)
        text = _COOKIES.sub(lambda match: match["lead"] + _COOKIE.sub(self._cookie, match["value"]), text)
        for pattern in (_DOCKER_AUTH, _NETRC, _COMMANDS):
            text = self._valued(pattern, "password", text)
        text = self._named(_FLAG, self._named(_NAMED, text))
        if "@" in text or "%40" in text:
            text = _EMAIL.sub(self._email, text)
        return _ENCODED_HOME.sub(self._home, _HOME.sub(self._home, text))

    def _formats(self, text: str) -> str:
        for kind, prefixes, rest in _PREFIXED:
            for prefix in prefixes.split():
                if prefix in text:
                    text = _prefixed(prefix, rest).sub(lambda match, kind=kind: self._secret(kind, match[0]), text)
        for kind, hint, template in _SHAPED:
            if hint in text:
                text = _shaped(template).sub(lambda match, kind=kind: self._secret(kind, match[0]), text)
        return text

    def _secret(self, kind: str, secret: str) -> str:
        return secret if _DUMMY.search(secret) else self._placeholder(kind, secret)

    def _pem(self, match: re.Match[str]) -> str:
        return self._placeholder("private key", match[0]) if _PEM_CONTENT.search(match["body"]) else match[0]

    def _valued(self, pattern: re.Pattern[str], kind: str, text: str) -> str:
        def changed(match: re.Match[str]) -> str:
            value = match["value"]
            if _DUMMY.search(value) or _REFERENCE.match(value):
                return match[0]
            start, end = match.start("value") - match.start(), match.end("value") - match.start()
            return match[0][:start] + self._placeholder(kind, value, bare=True) + match[0][end:]

        return pattern.sub(changed, text)

    def _authorization(self, match: re.Match[str]) -> str:
        value = match["value"]
        header = match["lead"][0] in "aA"
        if header and match["scheme"]:
            secret = _mixed(value) or value[1:].lower() != value[1:] or match["closed"] is not None
        else:
            secret = len(value) >= 16 and _mixed(value) and not value.startswith("AWS4-")
        if not secret or _is_no_secret(value) or (_CODE_VALUE.fullmatch(value) and not _random(value)):
            return match[0]
        return match["lead"] + self._placeholder("authorization", value, bare=True) + (match["closed"] or "")

    def _cookie(self, match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        secret = _COOKIE_OF_SESSION.search(name) or (len(value) >= 16 and _mixed(value))
        if not secret or _COOKIE_ATTRIBUTE.match(name) or _is_no_secret(value):
            return match[0]
        return match["lead"] + self._placeholder("cookie", value, bare=True)

    def _named(self, pattern: re.Pattern[str], text: str) -> str:
        """The text without values that their names give away.

        The pattern only looks at the value, so that a name inside a value that is no secret is still seen.
        """
        pieces, done = [], 0
        for match in pattern.finditer(text):
            if match.start() < done:
                continue
            value = _value(match)
            if value:
                start, done_before = match.start("value"), done
                done = start + len(value)
                if len(value) >= 256:
                    done = _REST.match(text, done).end()  # type: ignore[union-attr]
                pieces += text[done_before:start], self._placeholder(_kind(match), text[start:done], bare=True)
        return "".join(pieces) + text[done:]

    def _email(self, match: re.Match[str]) -> str:
        if match["tld"].lower() in _NO_TLD:
            return match[0]
        lead = match[0][: match.start("value") - match.start()]
        return lead + self._placeholder("e-mail address", match["value"])

    def _home(self, match: re.Match[str]) -> str:
        if match["user"].lower() in _NOT_USERS:
            return match[0]
        self.counts["home path"] += 1
        return match["lead"] + self._user(match["user"])

    # -- what is known

    def _placeholder(self, kind: str, secret: str, *, bare: bool = False) -> str:
        if secret not in self._found:
            kind = "password" if kind == "passphrase" else "secret" if kind == "key" else kind
            self._numbers[kind] += 1
            slug = re.sub(r"[^a-z0-9]+", "-", kind.lower())
            self._found[secret] = (kind, f"<{slug}-{self._numbers[kind]}>")
            if bare and len(secret) >= 8 and _mixed(secret):
                self._remember(secret)
        kind, placeholder = self._found[secret]
        self.counts[kind] += 1
        return placeholder

    def _user(self, name: str) -> str:
        if name not in self._users:
            number = len(self._users) + 1
            if number > MAX_LEARNED:
                return "<user>"
            self._users[name] = placeholder = "<user>" if number == 1 else f"<user-{number}>"
            self._places = None
            # Only a name that is no word of any language is replaced wherever it stands.
            if len(name) >= 6 and re.search(r"[\d._]", name) and name not in self._found:
                self._found[name] = ("user name", placeholder)
                self._remember(name)
        return self._users[name]

    def _remember(self, value: str) -> None:
        """Keep a value under its longest word, by which it is found again."""
        word = max(re.finditer(r"\w+", value), key=lambda run: len(run[0]))
        sharing = self._bare.setdefault(word[0], [])
        if len(sharing) < MAX_LEARNED:
            sharing.append((value[: word.start()], value))

    def _recalled(self, text: str) -> str:
        """The text without what is known by now: values by themselves, user names where a user name stands."""
        if self._users and any(name in text or _encoded(name) in text for name in self._users):
            text = self._user_places().sub(self._placed, text)
        return self._without_bare(text) if self._bare else text

    def _without_bare(self, text: str) -> str:
        pieces, done = [], 0
        for run in _WORDS.finditer(text):
            for lead, value in self._bare.get(run[1], ()):
                start = run.start(1) - len(lead)
                if start >= done and text.startswith(value, start):
                    kind, placeholder = self._found[value]
                    self.counts[kind] += 1
                    pieces += text[done:start], placeholder
                    done = start + len(value)
                    break
        return "".join(pieces) + text[done:]

    def _user_places(self) -> re.Pattern[str]:
        if self._places is None:
            names = sorted({*self._users, *map(_encoded, self._users)}, key=len, reverse=True)
            name = "|".join(map(re.escape, names))
            self._places = re.compile(
                rf"(?P<lead>(?i:home|users|media)(?:{_SEPARATOR}|-)|(?<![\w~])~|\bchown\s(?:-R\s)?"
                r"""|\b(?:USER|LOGNAME|USERNAME)\\*["']?\s?[=:]\s?\\*["']?|\d\((?=[\w.-]{1,64}\))"""
                r"|[r-][w-][xsStT-][r-][w-][xsStT-][r-][w-][xtT-][.+@]?\s{1,8}\d{1,6}\s{1,8})"
                rf"(?P<user>{name})(?!\w)(?:(?P<gap>[ \t]{{1,16}}|:)(?P=user)(?!\w))?"
                rf"|(?<![\w.@+-])(?P<login>{name})(?=@[\w\[])"
            )
        return self._places

    def _placed(self, match: re.Match[str]) -> str:
        name = match["user"] or match["login"]
        placeholder = self._users.get(name) or next(p for known, p in self._users.items() if _encoded(known) == name)
        self.counts["user name"] += 1
        again = match["gap"] + placeholder if match["gap"] else ""
        return (match["lead"] or "") + placeholder + again


def _encoded(name: str) -> str:
    """A name as agents write it into directory names: `-home-john-doe-work`."""
    return re.sub(r"[^A-Za-z0-9]", "-", name)


def _entries(box: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Where, under what name and what: in a list an option names the argument after it."""
    if isinstance(box, dict):
        yield from ((key, key, item) for key, item in list(box.items()))
        return
    before: Any = None
    for at, item in enumerate(box):
        yield at, before if isinstance(before, str) and before.startswith("--") else "", item
        before = item


def _kind(match: re.Match[str]) -> str:
    if match["password"] and match["password"].lower() == "passphrase":
        return "passphrase"
    return "password" if match["password"] else "secret" if match["secret"] else "key"


def _value(match: re.Match[str]) -> str | None:
    ...
