"""Documents as they are kept: passages, vectors, the graph and the queue. Nothing else imports LightRAG."""

import logging

# LightRAG warns of packages that it can do without while it is imported. It sets its logger's level there itself.
logging.getLogger("lightrag").addFilter(lambda record: record.levelno >= logging.ERROR)
