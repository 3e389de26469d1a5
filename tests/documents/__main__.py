"""``python -m tests.documents``: write the generated parts of all pages anew."""

from tests.documents import PAGES
from tests.documents.pages import whole

if __name__ == "__main__":
    for page, generate in PAGES.items():
        page.write_text(whole(page, generate()))
