"""Files that .proto files may import without a reference, since registries know them.

Those of Google come from packages; those of Confluent are short, and in no package without its client. Sources: the
dependencies that Confluent Schema Registry adds to every schema, and the descriptors in confluent-kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

__all__ = ["CONFLUENT_FILES", "google_directories"]

_OPTIONS = {"File": "file", "Message": "message", "Field": "field", "Enum": "enum", "EnumValue": "enum_value"}

CONFLUENT_FILES: Mapping[str, str] = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
"""
    + "".join(
        f"extend google.protobuf.{kind}Options {{ Meta {name}_meta = 1088; }}\n" for kind, name in _OPTIONS.items()
    ),
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
    "confluent/types/decimal.proto": 'syntax = "proto3"; import public "confluent/type/decimal.proto";',
    "confluent/type/variant.proto": """syntax = "proto3";
package confluent.type;
message Variant { bytes metadata = 1; bytes value = 2; }
""",
}
"""The texts by the path that imports them."""

# Packages with .proto files, which are imported by the same path. Those of google/protobuf come with the compiler.
_GOOGLE = ("google.api", "google.rpc", "google.type")


def google_directories() -> dict[str, str]:
    """The directories of the package googleapis-common-protos, by the path that imports their files."""
    found = {}
    for package in _GOOGLE:
        spec = find_spec(package)
        for directory in spec.submodule_search_locations or () if spec else ():
            found[package.replace(".", "/")] = directory
    return found
