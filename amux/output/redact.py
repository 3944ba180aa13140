"""Secrets out of a session before it is shared.

The rules are our own: detect-secrets brings requests and PyYAML, knows a third of these formats and reports lines, where
redaction needs the exact span, in JSON and prose alike.

Secrets are found by their format (`ghp_…`), by where they stand (a URL, a header, a flag) or by the name they are given
(`DB_PASSWORD=…`). What a place or a name gave away is then replaced where it stands bare as well. Every pattern takes
time linear in the text: repetitions are possessive or bounded, and begin at a literal or at a boundary.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

from amux.model import Json, SessionSummary
from amux.results.hits import Snippet

AnySession = TypeVar("AnySession", bound=SessionSummary)
Change = Callable[[str, str], str]
"""A text, and the name it has in its object or "", to what it becomes."""

MAX_LEARNED = 50
"""How many user names are learned from paths, and how many values may share a word: hostile texts hold thousands."""

MAX_SEEN = 128
"""How much of a value is looked at to tell whether it is a secret."""

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
    ("API key", "sk-", rf"(?=[A-Za-z]{{0,19}}\d){_ALNUM}{{20}}{_WORD}*"),
    ("API key", "sk-", rf"(?=[\w-]{{0,64}}\d)(?=[\w-]{{0,64}}[A-Z])(?=[\w-]{{0,64}}[a-z]){_WORD}{{24,}}"),
    ("API key", "sk_", f"{_HEX}{{40,}}"),
    ("Google key", "AIza", f"{_WORD}{{35}}(?!{_WORD})"),
    ("Google key", "AQ.Ab", f"{_WORD}{{30,}}"),
    ("Google token", "ya29. 1//0", r"[\w.-]{20,}"),
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
    ("Notion token", "secret_", rf"(?=[A-Za-z]{{0,39}}\d){_ALNUM}{{40,}}"),
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
    ("Bitbucket password", "ATBB", r"(?=[A-Za-z]{0,27}\d)\w{28,}"),
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

_BY_PREFIX = tuple((prefix, kind, rest) for kind, prefixes, rest in _PREFIXED for prefix in prefixes.split())

# Kind, a literal that must occur in the text for the pattern to be worth a try, the pattern.
_SHAPED = (
    ("JWT", "eyJ", r"eyJ{edge3}[\w-]{{8,2048}}+\.(?:eyJ[\w-]{{8,}}+(?:\.[\w-]++)*+|[\w-]{{8,}}+(?:\.[\w-]++){{1,3}}+)"),
    ("Discord token", ".", r"[MNO]{edge1}[\w-]{{23,27}}\.[\w-]{{6,7}}\.[\w-]{{27,}}+"),
    ("Telegram token", ":", r"\d(?<!\d.)\d{{7,11}}+:(?=[\w-]{{0,34}}[A-Z])(?=[\w-]{{0,34}}\d)[\w-]{{35}}(?![\w-])"),
    ("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{edge1}[A-Za-z0-9]{{13}}\.atlasv1\.[\w=-]{{40,}}+"),
    ("Mailchimp key", "-us", r"[0-9a-f]{edge1}[0-9a-f]{{31}}-us\d{{1,2}}(?![\w-])"),
    ("Mailgun key", "-", r"[0-9a-f]{edge1}[0-9a-f]{{31}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}(?![\w-])"),
    ("Azure client secret", "Q~", r"[\w~.-]{edge1}[\w~.-]{{2}}\dQ~[\w~.-]{{30,}}(?<!\.)"),
)

_PRIVATE_KEY = re.compile(
    r"""-{4,5}\ ?BEGIN\ [A-Z0-9 ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?\ ?-{4,5}
    (?P<body>
        (?:[^-]|-(?!---))*+(?=-{4,5}\ ?END)
        # Cut off before its end: only lines of base64, whatever stands before each (line numbers, `\n` written out).
        |(?:[^A-Za-z+/=]{0,16}(?:\\{1,8}[nr]|\s)[^A-Za-z+/=]{0,16}[A-Za-z0-9+/=]{16,}+)*+
    )
    (?:-{4,5}\ ?END\ [A-Z0-9 ]{0,40}-{4,5})?""",
    re.VERBOSE,
)
_KEY_MATERIAL = re.compile(r"(?=[A-Za-z+/]{0,80}\d)[A-Za-z0-9+/]{12}")

_URL_PASSWORD = re.compile(
    r"""://[^\s/:@"'`<>\\]{0,128}+:
    (?!\d{1,5}(?:[/?#\s"'`)\\]|$))  # a port
    (?P<value>(?!@)(?:[^\s"'`<>\\@]|@(?=[^\s"'`<>\\@/,;]{0,128}@)){1,256}+)(?=@)""",
    re.VERBOSE,
)
_URL_USER = re.compile(r"://(?P<value>(?=[\w-]{0,64}\d)(?=[\w-]{0,64}[A-Za-z])[\w-]{20,256}+)(?=@)", re.ASCII)
_URL_SIGNATURE = re.compile(
    r"[?&;](?i:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|key|code)="
    r"(?P<value>(?=[\w%+/=.~-]{0,256}\d)[\w%+/=.~-]{20,}+)",
    re.ASCII,
)
_DOCKER_LOGIN = re.compile(
    r"""["']auth\\*["'][ \t]?:[ \t]?\\*["']
    (?P<value>(?=[^"'\\]{0,80}[A-Z])(?=[^"'\\]{0,80}[a-z])(?:[A-Za-z0-9+/]{4}){2,}+[A-Za-z0-9+/]{0,3}={0,2})(?=\\*["'])""",
    re.VERBOSE,
)
_NETRC = re.compile(
    r"(?:\b|(?<=\\[nrt]))login\s{1,20}+[^\s/]{1,128}+\s{1,20}+password\s{1,20}+(?P<value>[^\s\"'<>\\]{3,}+)"
)
_COMMAND = re.compile(
    r"""(?:curl\b(?:(?!\s-[uU]|\s--user|\s--proxy-user)(?:[^\n|;&]|&(?!&)|(?<=\\)\n)){0,300}+
        \s(?:-[uU]|--user|--proxy-user)[ =]?\\?["']?[^\s:"'$]{1,128}+:
    |sshpass\s-p\s?
    |mysql(?:dump|admin)?\b(?:(?!\s-p)[^\n|;&]){0,200}+\s-p
    |mariadb\b(?:(?!\s-p)[^\n|;&]){0,200}+\s-p
    |redis-cli\b(?:(?!\s-a)[^\n|;&]){0,200}+\s-a\s
    |docker\slogin\b(?:(?!\s-p)[^\n|;&]){0,200}+\s-p\s
    |-pass(?:in|out)?\spass:)
    \\?["']?(?P<value>[^\s"'`<>\\|;]{3,}+)""",
    re.VERBOSE,
)

_AUTHORIZATION = re.compile(
    r"""(?P<lead>
        (?i:(?P<header>authorization)["'\\\])]{0,6}+[ \t]{0,4}+[:=,][ \t]{0,4}+[fbru]?["'\\`]{0,6}+
        (?:(?P<scheme>bearer|basic|token|apikey|api-key|key|ssws|bot|negotiate|splunk|genie-?key)[ \t]{1,4}+)?)
        |(?:\b|(?<=\\[nrt]))(?i:bearer|basic)[ \t]{1,4}+
    )
    (?P<value>[^\s"'`<>\\,;(){}\[\]]{6,}+)(?P<closed>(?=["'`\\]|[ \t]{0,8}(?:$|[\r\n])))?""",
    re.VERBOSE,
)
_COOKIES = re.compile(
    r"""(?P<lead>(?i:cookie)["'\\\])]{0,4}+[ \t]?[:=][ \t]?["'`\\]{0,4}+|(?<!\S)(?:-b|--cookie)[ =]["'])
    (?P<value>[^\r\n"'`\\]{4,})""",
    re.VERBOSE,
)
_COOKIE = re.compile(r"(?P<lead>(?<![^\s;])(?P<name>[^\s=;]{1,128}+)=)(?P<value>[^\s;<>]{6,}+)")
_COOKIE_ATTRIBUTE = re.compile(r"(?i:path|domain|expires|max-age|samesite|version|priority)$")
_COOKIE_OF_SESSION = re.compile(r"(?i:sess|sid|token|auth|jwt|csrf|xsrf|secret|login|remember|key|ticket)")

_TELLING_WORDS = "passphrase password passcode passwort passwd pass pwd secret token credential auth key"
# In the three ways people write names; a pattern that ignores case would not skip to the next likely place.
_SPELLED = "|".join(spelled for word in _TELLING_WORDS.split() for spelled in (word, word.title(), word.upper()))
_NAME = (
    f"(?P<name>{_SPELLED})"
    r"(?i:[_-]?(?:base|value|prod|production|staging|dev|test|live|old|new)|_?v?\d{1,3})?"  # -1 ends a placeholder
)
_QUALIFIED_KEY = re.compile(
    r"(?i:access|account|admin|anon|api|app|application|auth|client|deploy|encryption|hmac|integration|jwt|license|master"
    r"|private|role|secret|security|service|shared|signing|ssh|subscription|webhook|write)[_ -]?$"
)
_NAMED = re.compile(
    rf"""{_NAME}
    (?P<separator>(?:
        (?:\\[nrt]|["'`\\,\s-]){{0,60}}+value["'\\]{{0,4}}+[ \t]{{0,4}}+[:=]  # "name": "DB_PASSWORD", "value": …
        |["'`\])\\*]{{0,6}}+[ \t]{{0,20}}+(?:
            [:!=]?={{1,3}}>?
            |(?::|(?<=[ \t]))[ \t]{{0,4}}+[\w.\[\]]{{1,30}}+[ \t]{{0,4}}+=  # password: str = …
            |:(?!:)
            |(?P<weak>\|(?=[ \t])|,(?=[ \t"'\\])|(?<=[ \t])(?:is|was):?(?=[ \t])|>|(?<=[ \t])(?=["'`]?[A-Za-z0-9]))
        ))
        \*{{0,2}}+[ \t]{{0,20}}+(?:[fbruFBRU]{{1,2}}(?=["']))?)
    (?P<quote>\\{{0,7}}["'`])?
    (?=(?P<value>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\\\r\n])){{3,{MAX_SEEN}}}+|[^\s"'`<>\\]{{3,{MAX_SEEN}}}+)))""",
    re.VERBOSE,
)
_FLAG = re.compile(
    rf"""(?<![\w-])--?[a-zA-Z0-9-]{{0,40}}?{_NAME}
    (?P<separator>=|[ \t]{{1,8}}+|["'],[ \t]?(?=["']))(?P<weak>(?!))?(?P<quote>\\{{0,7}}["'])?(?![-$])
    (?=(?P<value>[^\s"'`<>\\]{{3,{MAX_SEEN}}}+))""",
    re.VERBOSE,
)
_SECRET_NAME = re.compile(rf"{_NAME}$")
_END_OF_WORD = re.compile(r"""[^\s"'`<>\\;,&|(){}\[\]]*+""")
_LINE_END = re.compile(r"$|\r?\n|\\n")
_YAML_LINE = re.compile(r"(?:^|\n|\\n)[ \t]*(?:- )?[\w.-]*$")

_DUMMY = re.compile(
    r"(?i:x{6}|\*{3}|\.\.\.|…|^[x*._-]+$|^<|^your[-_ ]|[-_ ]your[-_ ]|^your(?:api|key|token|secret|pass)|[-_]here$"
    r"|^change[-_]?(?:me|this|it)|^replace[-_]|^insert[-_]|^example|^placeholder|^dummy|^todo"
    r"|^\[?(?:redacted|hidden|masked|filtered))"
)
_REFERENCE = re.compile(
    r"\$[A-Za-z_{(\[]|[%&*]\w|[{(\[]|#\{|%[({]|![A-Za-z]+$|[a-z][a-z0-9+.-]*://|arn:|ssh-|ecdsa-|os\.|process\.|env\."
    r"|[~^>=<v]*\d+\.\d+(?:\.\d|$)|(?i:none|null|nil|true|false|undefined|string|optional|required|unknown)$"
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@+ /\\-]*")
_NAME_AS_VALUE = re.compile(
    r"(?:[A-Za-z]{1,16}[_.-]){0,8}(?i:pass(?:word|wd|phrase)?|pwd|token|secret|key|credential)s?"
    r"|[a-z]+(?:[A-Z][a-z]+){0,8}(?:Password|Token|Secret|Key)"
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|\?\.)[A-Za-z_]\w*)+|\w*(?:Password|Token|Secret|Key)s?")
_PLAIN_WORD = re.compile(
    r"[A-Z][a-z]+|(?i:str|bytes|text|any|bool|boolean|number|integer|object|field|value|input|data|varchar|char|hidden"
    r"|incorrect|invalid|missing|password|passwort|secret|token|option|prompt|empty|default|disabled|enabled|plain)"
)

_EMAIL = re.compile(
    r"""(?<![\w.+-])(?:(?<=\\)[nrt])?  # a line break written out is no part of the address
    (?P<value>(?!git@)[\w+-]++(?:\.[\w+-]++)*+(?:@|%40)
    (?!v?\d+\.\d)  # a package's version
    (?:[^\W_][\w-]*+\.){1,8}(?P<tld>[^\W\d_]{2,24}+)(?![\w-]))""",
    re.VERBOSE,
)
_NO_TLD = re.compile(
    r"(?i:png|jpe?g|gif|svg|webp|avif|[cm]?[jt]s|[jt]sx|s?css|json|html|xml|toml|ya?ml|lock|txt|whl|gz|zip|exe|dll"
    r"|service|socket|timer|target|mount|scope|slice)"
)

_SLASH = r"(?:[/\\]{1,4}|%2[Ff]|%5[Cc])"
_HOME = re.compile(
    rf"""(?P<lead>(?:(?<![\w.~-])|(?<=%3[Aa])|(?<=[/\\][A-Za-z])|(?<=/var)|(?<=/Data)|(?<=\\[nrt]))
    {_SLASH}(?:home|[Uu]sers){_SLASH})
    (?P<user>(?<=\\)[\w.-]{{1,30}}(?:\ [\w.-]{{1,30}}){{1,2}}(?=\\)|[\w+-]++(?:\.[\w+-]++)*+)""",
    re.VERBOSE,
)
_ENCODED_HOME = re.compile(r"(?P<lead>(?<![\w-])(?:-|[A-Z]--)(?:home|Users)-)(?P<user>[A-Za-z0-9]++)(?=[-/])")
_NOT_USERS = frozenset({"shared", "public", "default", "all", "root", "linuxbrew"})
_USER_LEAD = re.compile(
    r"""(?:(?<![A-Za-z0-9-])-{1,2}(?:home|Users)-|[A-Z]--Users-|[/\\](?:home|Users)-
    |(?<![\w.~-])/(?:run/)?media/
    |(?<![\w~])~
    |chown\s(?:-R\s)?(?:\w+:)?
    |(?:\b|\\[nrt])(?:USER|LOGNAME|USERNAME)\\*["']?\s?[=:]\s?\\*["']?
    |\b[ug]id=\d{1,10}\(
    |(?:[r-][w-][xsS-]){2}[r-][w-][xtT-][.+@]?\s{1,8}\d{1,6}\s{1,8}(?:\S{1,32}\s{1,8})?)$  # ls -l, owner and group""",
    re.VERBOSE,
)
_HOME_LEAD = re.compile(rf"(?:home|[Uu]sers){_SLASH}$")
_LOGIN_LEAD = re.compile(r"(?<![\w.@+-])$")
_HOST = re.compile(r"@(?:[A-Za-z\[]|\d+\.\d+\.\d+\.\d)")
_WORDS = re.compile(r"(?:\\[nrt])?(\w+)")


class Redactor:
    """Replaces secrets by placeholders, the same secret always by the same one; made once for all that is shared.

    `home` is the home directory the sessions come from, `user` a user name besides the one in it. `counts` says how many
    places were replaced, by kind of secret.
    """

    def __init__(self, home: str | None, user: str | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._found: dict[str, tuple[str, str]] = {}
        self._numbers: Counter[str] = Counter()
        self._bare: dict[str, list[tuple[str, str]]] = {}
        self._users: dict[str, str] = {}
        self._spellings: dict[str, str] = {}
        self._user_names: re.Pattern[str] | None = None
        own = _HOME.search(home) if home else None
        for name in (user, own and own["user"]):
            if name and name.lower() not in _NOT_USERS:
                self._user(name)
        # A home at an uncommon place, whose parent directory shows that its user follows.
        self._homes = home.removesuffix(user) if home and user and home.endswith((f"/{user}", f"\\{user}")) else None

    def summary(self) -> str:
        """One line that says what was replaced."""
        return "redacted: " + (", ".join(_plural(count, kind) for kind, count in self.counts.items()) or "nothing")

    def text(self, text: str) -> str:
        """The text without its secrets; a text already redacted stays as it is."""
        return self._recalled(self._searched(text))

    def json(self, value: Json) -> Json:
        """A copy of a JSON value without its secrets, in keys too; what stands under a name like `password` is one."""
        return _walked(value, self._member)

    def session(self, session: AnySession) -> AnySession:
        """The session, or search hit, without its secrets, raw records included."""
        searched = _changed(session, self._member)
        # Once more for what stood bare before it was known: a password printed, a user name out of its path.
        result: AnySession = _changed(searched, lambda text, _: self._recalled(text))
        return result

    def _member(self, value: str, name: str) -> str:
        """The text of a value that may have a name."""
        if name.lower() in ("authorization", "proxy-authorization", "cookie", "set-cookie", "auth"):
            lead = f'"{name}": "'
            return self.text(f'{lead}{value}"')[len(lead) : -1]
        text = self.text(value)
        named = _SECRET_NAME.search(name) if text == value else None
        kind = _kind(named) if named else None
        if kind and _is_secret(kind, value, quoted=True):
            return self._placeholder(kind, value, bare=True)
        return text

    def _searched(self, text: str) -> str:
        if len(text) < 6:
            return text
        if "PRIVATE KEY" in text:
            text = _PRIVATE_KEY.sub(self._private_key, text)
        text = self._without_formats(text)
        lowered = text.lower()
        text = self._without_places(text, lowered)
        if any(word in lowered for word in ("pass", "pwd", "secret", "token", "credential", "key", "_auth")):
            text = self._without_named(_FLAG, self._without_named(_NAMED, text))
        if "@" in text or "%40" in text:
            text = _EMAIL.sub(self._email, text)
        if "home" in lowered or "users" in lowered:
            text = self._in_user_places(_HOME.sub(self._home, text))
            text = _ENCODED_HOME.sub(self._home, text)
        return text

    def _without_formats(self, text: str) -> str:
        for prefix, kind, rest in _BY_PREFIX:
            if prefix in text:
                text = _prefixed(prefix, rest).sub(partial(self._format, kind), text)
        for kind, hint, template in _SHAPED:
            if hint in text:
                text = _shaped(template).sub(partial(self._format, kind), text)
        return text

    def _format(self, kind: str, match: re.Match[str]) -> str:
        return match[0] if _DUMMY.search(match[0]) else self._placeholder(kind, match[0])

    def _private_key(self, match: re.Match[str]) -> str:
        return self._placeholder("private key", match[0]) if _KEY_MATERIAL.search(match["body"]) else match[0]

    def _without_places(self, text: str, lowered: str) -> str:
        if "://" in text:
            text = _URL_PASSWORD.sub(partial(self._placed, "password"), text)
            text = _URL_USER.sub(partial(self._placed, "password"), text)
        if "=" in text:
            text = _URL_SIGNATURE.sub(partial(self._placed, "secret"), text)
        if any(word in lowered for word in ("authorization", "bearer", "basic")):
            text = _AUTHORIZATION.sub(self._authorization, text)
        if "cookie" in lowered or "-b " in text:
            text = _COOKIES.sub(lambda match: match["lead"] + _COOKIE.sub(self._cookie, match["value"]), text)
        for pattern in (_DOCKER_LOGIN, _NETRC, _COMMAND):
            text = pattern.sub(partial(self._placed, "password"), text)
        return text

    def _placed(self, kind: str, match: re.Match[str]) -> str:
        value = match["value"]
        if _DUMMY.search(value) or _REFERENCE.match(value):
            return match[0]
        start, end = match.start("value") - match.start(), match.end("value") - match.start()
        return match[0][:start] + self._placeholder(kind, value, bare=True) + match[0][end:]

    def _authorization(self, match: re.Match[str]) -> str:
        value = match["value"]
        if match["header"] and match["scheme"]:
            secret = _mixed(value) or value[1:].lower() != value[1:] or match["closed"] is not None
        else:
            secret = len(value) >= 16 and _mixed(value) and not value.startswith("AWS4-")
        if not secret or _is_no_secret(value) or (_CODE.fullmatch(value) and not _random(value)):
            return match[0]
        return match["lead"] + self._placeholder("authorization", value, bare=True)

    def _cookie(self, match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        secret = _COOKIE_OF_SESSION.search(name) or (len(value) >= 16 and _mixed(value))
        if not secret or _COOKIE_ATTRIBUTE.match(name) or _is_no_secret(value):
            return match[0]
        return match["lead"] + self._placeholder("cookie", value, bare=True)

    def _without_named(self, pattern: re.Pattern[str], text: str) -> str:
        """The text without the values that their names give away.

        The patterns only look ahead at a value: inside one that is no secret there may be another name.
        """
        pieces: list[str] = []
        done = at = 0
        while match := pattern.search(text, at):
            at = match.end()
            kind = _kind(match)
            value = _value(match, kind) if kind else None
            if kind and value:
                start = match.start("value")
                at = start + len(value)
                if len(value) == MAX_SEEN and (rest := _END_OF_WORD.match(text, at)):
                    at = rest.end()
                pieces += text[done:start], self._placeholder(kind, text[start:at], bare=True)
                done = at
        return "".join(pieces) + text[done:]

    def _email(self, match: re.Match[str]) -> str:
        if _NO_TLD.fullmatch(match["tld"]):
            return match[0]
        escape = match[0][: match.start("value") - match.start()]
        return escape + self._placeholder("e-mail address", match["value"])

    def _home(self, match: re.Match[str]) -> str:
        if match["user"].lower() in _NOT_USERS:
            return match[0]
        self.counts["home path"] += 1
        return match["lead"] + self._user(match["user"])

    def _placeholder(self, kind: str, secret: str, *, bare: bool = False) -> str:
        """What stands for a secret; `bare`: it is to be replaced also where nothing but itself gives it away."""
        if secret not in self._found:
            self._numbers[kind] += 1
            slug = re.sub(r"[^a-z0-9]+", "-", kind.lower())
            self._found[secret] = kind, f"<{slug}-{self._numbers[kind]}>"
            if bare and len(secret) >= 8 and _mixed(secret):
                self._remember(secret)
        kind, placeholder = self._found[secret]
        self.counts[kind] += 1
        return placeholder

    def _user(self, name: str) -> str:
        if name not in self._users:
            self._users[name] = placeholder = f"<user-{len(self._users) + 1}>" if self._users else "<user>"
            if len(self._users) <= MAX_LEARNED:
                # As agents write it into directory names: `-home-john-doe-work`.
                self._spellings |= {name: placeholder, re.sub(r"[^A-Za-z0-9]", "-", name): placeholder}
                self._user_names = None
            # Only a name that is no word of any language is replaced wherever it stands.
            if len(name) >= 6 and re.search(r"[\d._]", name):
                self._found.setdefault(name, ("user name", placeholder))
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
        if not self._bare:
            return self._in_user_places(text)
        pieces: list[str] = []
        done = 0
        for run in _WORDS.finditer(text):
            for lead, value in self._bare.get(run[1], ()):
                start = run.start(1) - len(lead)
                if start >= done and text.startswith(value, start):
                    pieces += text[done:start], self._placeholder("", value)
                    done = start + len(value)
                    break
        return self._in_user_places("".join(pieces) + text[done:])

    def _in_user_places(self, text: str) -> str:
        if not any(name in text for name in self._spellings):
            return text
        if self._user_names is None:
            names = sorted(self._spellings, key=len, reverse=True)
            self._user_names = re.compile(f"(?:{'|'.join(map(re.escape, names))})(?!\\w)")
        return self._user_names.sub(self._user_placed, text)

    def _user_placed(self, match: re.Match[str]) -> str:
        name, before = match[0], match.string[max(0, match.start() - 60) : match.start()]
        placed = (
            _USER_LEAD.search(before)
            # Below another root than the system's a short name may be any directory.
            or (len(name) >= 5 and _HOME_LEAD.search(before))
            or (_HOST.match(match.string, match.end()) and _LOGIN_LEAD.search(before))
            or (self._homes and before.endswith(self._homes[-60:]))
        )
        if not placed:
            return name
        self.counts["user name"] += 1
        return self._spellings[name]


@cache
def _edge(width: int) -> str:
    r"""Asserts, `width` characters into a match, that it began at an edge.

    A letter before it may belong to an escape: `\n`, `\u0022`, `%3D`, the end of a colour code.
    """
    skip = "." * width
    escapes = (r"\\[nrtbf]", r"\\u[0-9a-fA-F]{4}", "%[0-9A-Fa-f]{2}", r"[0-9;\[]m")
    return f"(?:(?<![A-Za-z0-9]{skip})" + "".join(f"|(?<={escape}{skip})" for escape in escapes) + ")"


@cache
def _prefixed(prefix: str, rest: str) -> re.Pattern[str]:
    # To the end of the word, for formats grow; a full stop there is the sentence's. The literal stands first, so that
    # the search skips what cannot match.
    return re.compile(f"{re.escape(prefix)}{_edge(len(prefix))}{rest}{_WORD}*(?<!\\.)", re.ASCII | re.DOTALL)


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
    parts = re.split(r"[/\\]", value) if _PATH.fullmatch(value) else ()
    return bool(parts) and not any(len(part) >= 12 and _mixed(part) and part.lower() != part for part in parts)


def _is_no_secret(value: str) -> bool:
    return bool(_DUMMY.search(value) or _REFERENCE.match(value)) or _is_path(value)


def _is_password(value: str, *, quoted: bool, shell: bool) -> bool:
    if shell or _mixed(value) or re.search(r"[!@#$%^&*+=?~].", value):
        return len(value) >= (4 if quoted or shell else 6)
    return quoted and len(value) >= 4 and not _PLAIN_WORD.fullmatch(value)


def _is_secret(kind: str, value: str, *, quoted: bool, shell: bool = False) -> bool:
    """Whether a value is one, by the kind of its name; `shell`: it is written as in a shell or a .env file."""
    if _is_no_secret(value) or (not shell and _NAME_AS_VALUE.fullmatch(value)):
        return False
    if re.search(r"\s", value):
        return kind == "passphrase"
    if not quoted and not shell and _CODE.fullmatch(value):
        return False
    if kind in ("password", "passphrase"):
        return _is_password(value, quoted=quoted, shell=shell)
    if kind == "key" or not (quoted or shell):
        return _random(value)
    return len(value) >= 8 and (shell or _mixed(value) or (len(value) >= 20 and value.lower() != value))


def _kind(named: re.Match[str]) -> str | None:
    """What kind of secret has such a name; None where the word is part of another name."""
    name, before = named["name"], named.string[max(0, named.start("name") - 14) : named.start("name")]
    match name.lower():
        case "secret" | "credential":
            return "secret"
        case "token":
            return None if before.lower().rstrip("_-").endswith(("next", "page")) else "secret"
        case "auth":
            return "secret" if before.endswith("_") else None
        case "key" if _QUALIFIED_KEY.search(before):
            return "secret"
        case "key":
            return "key" if name == "KEY" and before.endswith("_") else None
        case "pass":
            apart = before.endswith(("_", "-", '"', "'")) or (name == "PASS" and not before[-1:].isalpha())
            return "password" if apart or (name == "Pass" and before[-1:].islower()) else None
        case "passphrase":
            return "passphrase"
        case _:
            return "password"


def _value(match: re.Match[str], kind: str) -> str | None:
    """The secret that a name gives away; None when the value is none."""
    value, quoted = match["value"], match["quote"] is not None
    shell = not quoted and match["separator"] == "=" and (match[0].startswith("-") or match["name"].isupper())
    if shell:
        value = value.rstrip(";,)&|")
    elif not quoted:
        value, end = re.split(r"([,;&|(){}\[\]])", value + ";", maxsplit=1)[:2]
        value = value.rstrip(".:")
        if end == "(":
            return None  # a call
    if kind == "password" and not quoted and _is_yaml_word(match, value):
        return value
    if match["weak"] is not None and not _is_plain_enough(match, kind, value):
        return None
    return value if _is_secret(kind, value, quoted=quoted, shell=shell) else None


def _is_plain_enough(named: re.Match[str], kind: str, value: str) -> bool:
    """Whether a value is so clearly a secret that words, a comma or a table's bar may stand between it and its name."""
    match named["weak"]:
        case ">":
            return named.string.startswith("</", named.start("value") + len(value)) and _mixed(value)
        case "":
            return len(value) >= 16 and _random(value) and sum(c.isdigit() for c in value) >= 3
        case ",":
            return _random(value)
        case _:
            return _random(value) or (kind == "password" and _mixed(value))


def _is_yaml_word(match: re.Match[str], value: str) -> bool:
    """Whether `password: letmein` is a line of its own, which prose and types seldom are."""
    end = match.start("value") + len(value)
    before, after = match.string[max(0, match.start() - 80) : match.start()], match.string[end : end + 2]
    if match["separator"].strip() != ":" or not _YAML_LINE.search(before) or not _LINE_END.match(after):
        return False
    word = len(value) >= 6 and value.isalpha() and value.islower()
    return word and not _PLAIN_WORD.fullmatch(value) and not _is_no_secret(value)


def _changed(value: Any, change: Change) -> Any:
    """A model's value with every text in its shown fields changed."""
    if isinstance(value, tuple):
        return tuple(_changed(item, change) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return _walked(value, change)
    shown = (field.name for field in fields(value) if not field.metadata.get("internal"))
    changed = {name: _changed(getattr(value, name), change) for name in shown}
    if isinstance(value, Snippet) and changed["text"] != value.text:
        changed["matches"] = ()  # they are offsets into the old text
    return replace(value, **changed)


def _walked(value: Json, change: Change) -> Json:
    # A stack, not recursion: foreign JSON nests deeper than Python calls may.
    top: list[Any] = [value]
    boxes: list[Any] = [top]
    while boxes:
        box = boxes.pop()
        for at, name, item in _entries(box):
            if isinstance(item, str):
                box[at] = change(item, name)
            elif isinstance(item, dict):
                box[at] = {change(key, "") if isinstance(key, str) else key: inner for key, inner in item.items()}
                boxes.append(box[at])
            elif isinstance(item, list):
                box[at] = list(item)
                boxes.append(box[at])
            elif type(item) is int and _SECRET_NAME.search(name):
                text = change(str(item), name)
                box[at] = item if text == str(item) else text
    return top[0]


def _entries(box: Any) -> Iterator[tuple[Any, str, Any]]:
    """Where, under what name, what: in a list an option names the argument after it."""
    if isinstance(box, dict):
        yield from [(key, str(key), item) for key, item in box.items()]
        return
    before = None
    for at, item in enumerate(box):
        yield at, before if isinstance(before, str) and before.startswith("--") else "", item
        before = item


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('s') else 's'}"
