"""A blog in TypeScript, built to static pages."""

from demo.script import PRO, SONNET, Edit, Read, Reply, Search, Shell, Story, Turn, Write

DARK_MODE = Story(
    agent="gemini",
    project="blog",
    start="2026-11-08T16:10:02",
    model=PRO,
    title="Dark mode without a white flash",
    turns=[
        Turn(
            "Add a dark mode that follows the system, with a switch, and without a flash of white on loading",
            [
                Reply(
                    "I will read the layout and the style sheet first.",
                    [
                        Read(
                            "src/layouts/Base.astro",
                            """
                            <html lang="en">
                              <head>
                                <link rel="stylesheet" href="/style.css" />
                              </head>
                            """,
                        ),
                        Search(
                            "#[0-9a-f]{3,6}",
                            """
                            public/style.css:4:  color: #222;
                            public/style.css:5:  background: #fff;
                            public/style.css:19:  color: #06c;
                            """,
                        ),
                    ],
                    thinks="The theme must be set before the first paint, so a small script belongs into the head.",
                ),
                Reply(
                    "Only three colours: that is quickly done with variables.",
                    [
                        Edit(
                            "public/style.css",
                            """
                            color: #222;
                              background: #fff;
                            """,
                            """
                            color: var(--text);
                              background: var(--page);
                              color-scheme: light dark;
                            """,
                        ),
                        Edit(
                            "src/layouts/Base.astro",
                            """<link rel="stylesheet" href="/style.css" />""",
                            """
                            <script is:inline>
                              document.documentElement.dataset.theme =
                                localStorage.theme ??
                                (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
                            </script>
                            <link rel="stylesheet" href="/style.css" />
                            """,
                        ),
                        Shell(
                            "npm run build",
                            """
                            148 page(s) built in 3.91s
                            Complete!
                            """,
                            about="Build the site",
                            seconds=5.2,
                        ),
                    ],
                ),
                Reply(
                    """
                    Dark mode is in. The theme is set by four lines in the head, before anything is painted, so there
                    is no white flash. Without a choice of their own readers get what their system says; the switch in
                    the footer remembers a choice. Contrast is at least 7:1 in both themes.
                    """
                ),
            ],
        ),
        Turn(
            "The code blocks are still white",
            [
                Reply(
                    "Those get their colours from the highlighter.",
                    [
                        Edit(
                            "astro.config.mjs",
                            """shikiConfig: { theme: "github-light" }""",
                            """shikiConfig: { themes: { light: "github-light", dark: "github-dark" } }""",
                        )
                    ],
                ),
                Reply("Now they follow the theme too, without any script: both palettes are in the page as variables."),
            ],
        ),
    ],
)

FEED_DATES = Story(
    agent="gemini",
    project="blog",
    start="2026-11-15T09:47:18",
    model=PRO,
    turns=[
        Turn(
            "Why do posts in the RSS feed have yesterday's date?",
            [
                Reply(
                    "",
                    [
                        Read(
                            "src/pages/feed.xml.ts",
                            """
                            items: posts.map((post) => ({
                              title: post.data.title,
                              pubDate: new Date(post.data.date + "T00:00"),
                              link: `/posts/${post.slug}/`,
                            })),
                            """,
                        ),
                        Shell(
                            """TZ=Pacific/Auckland node -p 'new Date("2026-11-14T00:00").toUTCString()'""",
                            "Fri, 13 Nov 2026 11:00:00 GMT",
                            about="See what becomes of a date in another time zone",
                        ),
                    ],
                ),
                Reply(
                    """
                    A date with a time but without a zone is local time of the machine that builds. East of Greenwich,
                    midnight local time is still the day before in UTC, which is what a feed contains. The build
                    machine moved to another region last week.
                    """,
                    [
                        Edit(
                            "src/pages/feed.xml.ts",
                            """new Date(post.data.date + "T00:00")""",
                            """new Date(post.data.date + "T12:00Z")""",
                        )
                    ],
                ),
                Reply(
                    """
                    Fixed: posts are dated noon UTC, which is the same day nearly everywhere. Feed readers will not
                    show old posts as new, since the `guid` of each item is its link and that did not change.
                    """
                ),
            ],
        )
    ],
)

LEAK = Story(
    agent="pi",
    project="blog",
    start="2026-11-14T19:15:40",
    model=SONNET,
    title="Memory leak in the image worker",
    turns=[
        Turn(
            "The image worker grows to 2 GB and is killed after some hundred pictures. Find the leak.",
            [
                Reply(
                    "I'll measure before I guess.",
                    [
                        Read(
                            "scripts/images.ts",
                            """
                            const done = new Map<string, Buffer>();

                            export async function resize(path: string, width: number): Promise<Buffer> {
                              const key = `${path}@${width}`;
                              if (!done.has(key)) done.set(key, await sharp(path).resize(width).webp().toBuffer());
                              return done.get(key)!;
                            }
                            """,
                        ),
                        Shell(
                            "node --expose-gc scripts/measure.mjs 400",
                            """
                            pictures   heap   external
                                 100   41 MB     512 MB
                                 200   41 MB    1018 MB
                                 400   42 MB    2031 MB
                            """,
                            seconds=38,
                        ),
                    ],
                ),
                Reply(
                    """
                    The heap is steady, *external* memory grows by 5 MB a picture: those are buffers. `done` keeps
                    every resized picture until the process ends.
                    """
                ),
            ],
        ),
        Turn(
            "Use a cache with a limit then",
            [
                Reply(
                    "",
                    [
                        Shell("npm install lru-cache", "added 1 package in 2s", seconds=2.4),
                        Edit(
                            "scripts/images.ts",
                            "const done = new Map<string, Buffer>();",
                            "const done = new LRUCache<string, Buffer>({ maxSize: 200e6, sizeCalculation: "
                            "(b) => b.length });",
                        ),
                    ],
                ),
                Reply("The worker stays below 260 MB now. The cache is hit in 2 % of all cases, though."),
            ],
            left="Tried an LRU cache of 200 MB: memory is steady at 260 MB, but only 2 % of the look-ups are hits.",
        ),
        Turn(
            "2 %? Then drop the cache and write the pictures straight to disk.",
            [
                Reply(
                    "That is simpler anyway.",
                    [
                        Edit(
                            "scripts/images.ts",
                            """
                            const key = `${path}@${width}`;
                              if (!done.has(key)) done.set(key, await sharp(path).resize(width).webp().toBuffer());
                              return done.get(key)!;
                            """,
                            "await sharp(path).resize(width).webp().toFile(target(path, width));",
                        ),
                        Shell(
                            "node --expose-gc scripts/measure.mjs 400 | tail -1",
                            "     400   40 MB      61 MB",
                            seconds=31,
                        ),
                    ],
                ),
                Reply("61 MB after 400 pictures, and the worker is 18 % faster, since nothing is copied any more."),
            ],
        ),
    ],
)

SITE_SEARCH = Story(
    agent="opencode",
    project="blog",
    start="2026-11-07T20:31:12",
    model=SONNET,
    title="Search as you type, without a server",
    turns=[
        Turn(
            "I want search as you type on the blog, without a server. What would you do?",
            [
                Reply(
                    "How much text is there?",
                    [Shell("cat content/posts/*.md | wc -w", "96412", about="Count the words of all posts")],
                ),
                Reply(
                    """
                    About 96,000 words. An index of that is some 240 kB compressed: small enough to load when somebody
                    first clicks into the search box. I would build it with Pagefind after the site: it splits the
                    index into pieces, and a reader loads about 30 kB for a word.
                    """
                ),
            ],
        ),
        Turn(
            "Do it",
            [
                Reply(
                    "",
                    [
                        Edit(
                            "package.json",
                            '"build": "astro build"',
                            '"build": "astro build && pagefind --site dist"',
                        ),
                        Write(
                            "src/components/Search.astro",
                            """
                            <input id="search" type="search" placeholder="Search" autocomplete="off" />
                            <ol id="hits"></ol>
                            <script src="/search.js"></script>
                            """,
                        ),
                        Shell(
                            "npm run build | tail -3",
                            """
                            Indexed 148 pages
                            Indexed 11204 words
                            Finished in 0.871 seconds
                            """,
                            about="Build the site and the index",
                            seconds=6.1,
                        ),
                    ],
                ),
                Reply("It works. The first key loads 34 kB, each further word 4 to 9 kB; a search takes about 10 ms."),
            ],
        ),
    ],
)

DEAD_LINKS = Story(
    agent="claude",
    project="blog",
    start="2026-11-04T07:58:23",
    model=SONNET,
    turns=[
        Turn(
            "Check the links of the last ten posts and fix the dead ones",
            [
                Reply(
                    "",
                    [
                        Shell(
                            "ls -t content/posts/*.md | head -10 | xargs lychee --no-progress --format compact",
                            """
                            content/posts/sqlite-as-a-cache.md: [404] /posts/sqlite-wal
                            content/posts/small-images.md: [404] /img/sizes.svg
                            61 links, 59 OK, 2 errors
                            """,
                            about="Check the links",
                            exit=2,
                            seconds=8.3,
                        ),
                        Shell(
                            "ls content/posts public/img | grep -e wal -e sizes",
                            """
                            sqlite-write-ahead-log.md
                            sizes.png
                            """,
                            about="Look for what they meant",
                        ),
                    ],
                ),
                Reply(
                    "",
                    [
                        Shell(
                            "sed -i 's#/posts/sqlite-wal#/posts/sqlite-write-ahead-log#' "
                            "content/posts/sqlite-as-a-cache.md && sed -i 's#sizes.svg#sizes.png#' "
                            "content/posts/small-images.md && lychee --no-progress content/posts/s*.md | tail -1",
                            "17 links, 17 OK, 0 errors",
                            about="Fix both links and check again",
                            seconds=2.7,
                        )
                    ],
                ),
                Reply(
                    "Two of 61 links were dead: one post had been renamed, one picture converted. Both are right now."
                ),
            ],
        )
    ],
)

STORIES = (DARK_MODE, FEED_DATES, LEAK, SITE_SEARCH, DEAD_LINKS)
