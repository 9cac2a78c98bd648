"""Names of fields as rag-stack writes them."""

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from cragside.entrypoints.http.models import Shape


class CamelModel(Shape):
    """A model whose fields are written in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
