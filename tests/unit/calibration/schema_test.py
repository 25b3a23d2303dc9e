"""schema_test.py WRITE_CALIBRATION SOURCE_DIR: what is written and what is shipped obeys docs/formats/calibration.schema.json, and
the schema refuses what it should."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

root = pathlib.Path(sys.argv[2])
schema = json.loads((root / "docs/formats/calibration.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

with tempfile.TemporaryDirectory() as folder:
    written = pathlib.Path(folder) / "example.json"
    subprocess.run([sys.argv[1], str(written)], check=True)
    example = json.loads(written.read_text())
validator.validate(example)

shipped = sorted((root / "calibration/data").glob("*.json"))
assert shipped, "no calibration is shipped"
for path in shipped:
    document = json.loads(path.read_text())
    # Thousands of like samples: one of each hundred, and the last, are enough here.
    for table in document["kernel_tables"]:
        table["rows"] = table["rows"][::100] + table["rows"][-1:]
    validator.validate(document)


def refused(change):
    broken = copy.deepcopy(example)
    change(broken)
    return not validator.is_valid(broken)


assert refused(lambda d: d.update(schema="sibyl.calibration/2"))
assert refused(lambda d: d.pop("device"))
assert refused(lambda d: d["kernels"][0].update(time_s=-1))
assert refused(lambda d: d["kernels"][0].update(key=5))
assert refused(lambda d: d["kernels"][0].update(surprise=1))
assert refused(lambda d: d.update(kernel_tables=[{"key": "forward copy[$0]->[$0]:f32", "rows": [[4, -1]]}]))
assert refused(lambda d: d.update(kernel_tables=[{"key": "forward copy[$0]->[$0]:f32"}]))
assert refused(lambda d: d["collectives"][0].update(collective="gossip"))
