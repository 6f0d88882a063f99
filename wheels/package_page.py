"""README as the page of the package on an index, where paths of the repository lead nowhere."""

import re

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")
CHECKOUT = re.compile(r"<!-- checkout -->.*?<!-- end -->", re.S)
COMMENT = re.compile(r"<!-- .*? -->\n")
MORE = re.compile(r" \(\[more\]\([^)]+\)\)")
LINKS = re.compile(r"(?<=^## Read on\n\n).+?(?=\n## |\Z)", re.M | re.S)
HELP = """\
`help(kafkacodec)` lists the public names; the docstring of each describes types, units and errors. `kafkacodec --help`
lists the commands, and `kafkacodec COMMAND --help` their options.
"""
INSTALL = re.compile(r"(?<=pip install )('?)\.(?=['\[\s])")


def package_page(readme: str, url: str, ref: str) -> str:
    """README with links to files at `url`, a repository on GitHub.

    Without one there are no images and of links only the texts; where these say nothing by themselves, they are left
    out, and the list of links is a sentence on the help that the package has.

    What README says of a checkout, between comments, is left out, and so are other comments.
    """

    def absolute(link: re.Match[str]) -> str:
        image, text, path = link.groups()
        if not url:
            return "" if image else text
        return f"{image}[{text}]({url}/{'raw' if image else 'blob'}/{ref or 'HEAD'}/{path})"

    text = INSTALL.sub(r"\1kafkacodec", COMMENT.sub("", CHECKOUT.sub("", readme)))
    if not url:
        text = LINKS.sub(HELP, MORE.sub("", text))
    text = LINK.sub(absolute, text)
    return re.sub(r"\n{3,}", "\n\n", text)


def package_urls(url: str, ref: str) -> dict[str, str]:
    """The addresses in the package's metadata: none without a repository."""
    if not url:
        return {}
    files = f"{url}/blob/{ref or 'HEAD'}"
    return {
        "Source": url,
        "Documentation": f"{files}/docs/README.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
