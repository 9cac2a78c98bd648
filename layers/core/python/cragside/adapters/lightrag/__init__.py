"""The knowledge base on LightRAG. Nothing else in cragside imports LightRAG."""

import logging

# LightRAG sets its logger's level when it is imported, and warns there of packages that it can do without.
logging.getLogger("lightrag").addFilter(lambda record: record.levelno >= logging.ERROR)
