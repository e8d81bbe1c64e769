#!/usr/bin/env python3
"""Fills a folder with broken files, made from tests/fixtures by one change each. Needs no packages.

usage: make_inputs.py FOLDER
"""

import json
import os
import pathlib
import struct
import sys
import warnings
import zipfile

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "2.15.0"


class Package:
    """The records of a .pt2, to be changed and written again."""

    def __init__(self, name):
        with zipfile.ZipFile(FIXTURES / f"{name}.pt2") as archive:
            self.records = {entry: archive.read(entry) for entry in archive.namelist()}
        self.root = next(iter(self.records)).split("/")[0] + "/"

    def json(self, record):
        return json.loads(self.records[self.root + record])

    def set_json(self, record, value):
        self.records[self.root + record] = json.dumps(value).encode()

    def change(self, edit, record="models/model.json"):
        """`edit` gets the parsed JSON of a record and changes it in place."""
        value = self.json(record)
        edit(value)
        self.set_json(record, value)
        return self

    def change_text(self, old, new, record="models/model.json"):
        text = self.records[self.root + record]
        assert old.encode() in text, f"{old} is not in {record}"
        self.records[self.root + record] = text.replace(old.encode(), new.encode())
        return self

    def drop(self, record):
        del self.records[self.root + record]
        return self

    def write(self, path, method=zipfile.ZIP_STORED):
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in self.records.items():
                archive.writestr(zipfile.ZipInfo(name), data, method)


def graph_of(document):
    return document["graph_module"]["graph"]


def config_of(document, name="up.weight"):
    return document["config"][name]["tensor_meta"]


def npy(descr, shape, data, order="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def npz(path, **arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data)


def floats(*shape, descr="<f4", size=4):
    count = 1
    for extent in shape:
        count *= extent
    return npy(descr, shape, b"\0" * (count * size))


# --- The archive


def directory(data):
    """Positions of the entries of a zip file's central directory, in order."""
    count, _, at = struct.unpack("<HII", data[data.rindex(b"PK\x05\x06") + 10:][:10])
    places = []
    for _ in range(count):
        places.append(at)
        name, extra, comment = struct.unpack("<HHH", data[at + 28:at + 34])
        at += 46 + name + extra + comment
    return places


def place_of(data, name):
    """The position of the directory entry of a record."""
    return next(at for at in directory(data) if data[at + 46:].startswith(name.encode()))


def damage_archives(folder):
    whole = (FIXTURES / "mlp.pt2").read_bytes()
    (folder / "empty.pt2").write_bytes(b"")
    (folder / "truncated.pt2").write_bytes(whole[: len(whole) // 2])
    (folder / "no_tail.pt2").write_bytes(whole[:-60])
    (folder / "zeros.pt2").write_bytes(bytes(4096))
    at = whole.index(b'"graph_module"')
    (folder / "flipped_byte.pt2").write_bytes(whole[:at + 200] + bytes([whole[at + 200] ^ 1]) + whole[at + 201:])
    # The first record's offset in the central directory leads far outside of the file.
    central = directory(whole)[0]
    (folder / "offset_outside.pt2").write_bytes(
        whole[:central + 42] + struct.pack("<I", 0x7FFFFFFF) + whole[central + 46:])
    with zipfile.ZipFile(folder / "no_models.pt2", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    (folder / "unreadable_text.pt2").write_text("this is neither a zip file nor a graph\n")


def overlapping(folder):
    """Two entries of the directory that state the same place."""
    path = folder / "overlap.pt2"
    Package("mlp").write(path)
    data = bytearray(path.read_bytes())
    entries = directory(data)
    data[entries[1] + 42:entries[1] + 46] = data[entries[0] + 42:entries[0] + 46]
    path.write_bytes(bytes(data))


def same_name_twice(folder):
    package = Package("mlp")
    names = list(package.records)
    with zipfile.ZipFile(folder / "same_name.pt2", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names + names[:1]:
            archive.writestr(zipfile.ZipInfo(name), package.records[name])


def bomb(folder):
    """A record that claims to unpack to 4 GiB, from a kilobyte of deflated zeros."""
    package = Package("mlp")
    path = folder / "bomb.pt2"
    name = package.root + "models/model.json"
    package.records[name] = bytes(1 << 20)
    package.write(path, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = place_of(data, name)
    local = struct.unpack("<I", data[at + 42:at + 46])[0]
    data[at + 24:at + 28] = data[local + 22:local + 26] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(bytes(data))


def lying_size(folder):
    """A deflated record that holds more than its directory entry says."""
    package = Package("mlp")
    path = folder / "lying_size.pt2"
    package.write(path, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = place_of(data, package.root + "models/model.json")
    data[at + 24:at + 28] = struct.pack("<I", 100)
    path.write_bytes(bytes(data))


def old_layouts(folder):
    package = Package("mlp").drop("data/weights/model_weights_config.json")
    package.records[package.root + "data/weights/model.pt"] = b"PK"
    package.write(folder / "torch_2_8.pt2")
    with zipfile.ZipFile(folder / "torch_2_6.pt2", "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
    package = Package("mlp")
    package.records[package.root + "models/other.json"] = package.records[package.root + "models/model.json"]
    package.write(folder / "two_models.pt2")
    package = Package("mlp")
    package.records[package.root + "byteorder"] = b"big"
    package.write(folder / "big_endian.pt2")


# --- The program


def programs(folder):
    def version(document):
        document["schema_version"] = {"major": 9, "minor": 1}
        document["torch_version"] = "3.1.0"

    def unknown_ops(document):
        nodes = graph_of(document)["nodes"]
        nodes[0]["target"] = "torch.ops.mylib.fancy_linear.default"
        nodes[1]["target"] = "torch.ops.aten.no_such_op.default"
        nodes[3]["target"] = "torch.ops.mylib.fancy_linear.default"

    def cycle(document):
        graph_of(document)["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = "layer_norm"

    def twice(document):
        graph_of(document)["nodes"][1]["outputs"][0]["as_tensor"]["name"] = "linear"
        graph_of(document)["tensor_values"]["gelu"] = graph_of(document)["tensor_values"]["linear"]

    def dtype(document):
        graph_of(document)["tensor_values"]["x"]["dtype"] = 99

    def sparse(document):
        graph_of(document)["tensor_values"]["x"]["layout"] = 1

    def huge(document):
        graph_of(document)["tensor_values"]["x"]["sizes"] = [{"as_int": 1 << 62}, {"as_int": 48}]

    def negative(document):
        graph_of(document)["tensor_values"]["x"]["sizes"][0] = {"as_int": -5}

    def wrong_shape(document):
        graph_of(document)["tensor_values"]["x"]["sizes"][1] = {"as_int": 47}

    def no_output(document):
        graph_of(document)["outputs"][0]["as_tensor"]["name"] = "nowhere"
        spec = document["graph_module"]["signature"]["output_specs"][0]
        spec["user_output"]["arg"]["as_tensor"]["name"] = "nowhere"

    def no_argument(document):
        del graph_of(document)["nodes"][0]["inputs"][1]

    def extra_argument(document):
        graph_of(document)["nodes"][1]["inputs"].append({"name": "speed", "arg": {"as_int": 3}, "kind": 2})

    def wrong_kind(document):
        graph_of(document)["nodes"][0]["inputs"][1]["arg"] = {"as_string": "weight"}

    def no_weight_name(document):
        document["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "gone.weight"

    def no_graph(document):
        del document["graph_module"]

    def bad_number(document):
        graph_of(document)["nodes"] = 7

    def many_dims(document):
        graph_of(document)["tensor_values"]["x"]["sizes"] = [{"as_int": 1}] * 300

    for name, edit in (
        ("future_schema", version), ("unknown_ops", unknown_ops), ("cycle", cycle), ("twice", twice),
        ("bad_dtype", dtype), ("sparse", sparse), ("huge_shape", huge), ("negative_shape", negative),
        ("wrong_shape", wrong_shape), ("no_output", no_output), ("no_argument", no_argument),
        ("extra_argument", extra_argument), ("wrong_kind", wrong_kind), ("no_weight_name", no_weight_name),
        ("no_graph", no_graph), ("nodes_are_a_number", bad_number), ("many_dims", many_dims),
    ):
        Package("mlp").change(edit).write(folder / f"{name}.pt2")

    Package("mlp").change_text('"as_float": 1e-05', '"as_float": NaN').write(folder / "nan_json.pt2")
    Package("mlp").change_text('"opset_version": {', '"opset_version": {"x": ' + "[" * 5000 + "]" * 5000 + ", ").write(
        folder / "deep_json.pt2")
    package = Package("mlp")
    package.records[package.root + "models/model.json"] = package.records[package.root + "models/model.json"][:-1000]
    package.write(folder / "short_json.pt2")
    package.records[package.root + "models/model.json"] = b"\xff\xfe\x00"
    package.write(folder / "not_json.pt2")


def symbols(folder):
    """Programs with dynamic sizes."""
    def expression(text):
        def edit(document):
            graph_of(document)["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = text
        return edit

    def empty_range(document):
        for limits in document["range_constraints"].values():
            limits["min_val"], limits["max_val"] = 9, 3

    deep = "Add(" * 20000 + "Integer(1)" + ", Integer(1))" * 20000
    for name, text in (("bad_symbol", "Symbol('s"), ("unknown_function", "besselj(Integer(1), Integer(2))"),
                       ("deep_symbol", deep), ("division_by_zero", "FloorDiv(Integer(4), Integer(0))")):
        Package("mlp_dynamic").change(expression(text)).write(folder / f"{name}.pt2")
    Package("mlp_dynamic").change(empty_range).write(folder / "empty_range.pt2")


def weights(folder):
    config = "data/weights/model_weights_config.json"

    def edit(change):
        return lambda document: change(config_of(document))

    def pickled(document):
        document["config"]["up.weight"]["use_pickle"] = True

    def climb(document):
        document["config"]["up.weight"]["path_name"] = "../../etc/passwd"

    for name, change in (
        ("weight_offset", edit(lambda meta: meta["storage_offset"].update(as_int=1 << 40))),
        ("weight_negative", edit(lambda meta: meta["storage_offset"].update(as_int=-4))),
        ("weight_overflow", edit(lambda meta: meta.update(sizes=[{"as_int": 1 << 40}] * 2, strides=[{"as_int": 1 << 40}] * 2))),
        ("weight_dtype", edit(lambda meta: meta.update(dtype=8))),
        ("weight_pickled", pickled),
        ("weight_climbs", climb),
    ):
        Package("mlp").change(change, config).write(folder / f"{name}.pt2")
    Package("mlp").drop("data/weights/weight_0").write(folder / "weight_missing.pt2")
    Package("mlp").drop(config).write(folder / "no_config.pt2")
    package = Package("mlp")
    package.records[package.root + "data/weights/weight_0"] = b""
    package.write(folder / "weight_absent.pt2")
    package.records[package.root + "data/weights/weight_0"] = bytes(100)
    package.write(folder / "weight_short.pt2")


# --- Inputs of a call


def arrays(folder):
    good = floats(5, 48)
    npz(folder / "other_dtype.npz", in0=floats(5, 48, descr="<f8", size=8))
    npz(folder / "other_shape.npz", in0=floats(5, 47))
    npz(folder / "other_rank.npz", in0=floats(240))
    npz(folder / "too_many.npz", in0=good, in1=good)
    npz(folder / "unknown_name.npz", image=good)
    npz(folder / "none.npz")
    npz(folder / "out_only.npz", out0=floats(5, 10))
    npz(folder / "call_gap.npz", in0=good, in0_call3=good)
    npz(folder / "call_short.npz", in0=floats(4, 8), in1=floats(2, descr="<i8", size=8), in0_call2=floats(4, 8))
    npz(folder / "batch_too_large.npz", in0=floats(65, 48))
    npz(folder / "ids_outside.npz", in0=npy("<i8", (2, 9), struct.pack("<18q", *([3] * 17 + [100]))))
    npz(folder / "short_array.npz", in0=good[:-40])
    npz(folder / "objects.npz", in0=npy("|O", (5, 48), b"\x80\x04N."))
    npz(folder / "big_endian.npz", in0=floats(5, 48, descr=">f4"))
    npz(folder / "absurd_array.npz", in0=npy("<f4", (1 << 40, 1 << 40), b""))
    npz(folder / "no_header.npz", in0=b"\x93NUMPY\x01\x00\xff\xffabc")
    npz(folder / "not_numpy.npz", in0=b"hello")
    npz(folder / "not_bits.npz", in0_bf16=floats(5, 48))
    (folder / "not_a_zip.npz").write_bytes(b"hello")


def not_files(folder):
    (folder / "folder.pt2").mkdir()
    os.mkfifo(folder / "pipe.pt2")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for fill in (damage_archives, overlapping, same_name_twice, bomb, lying_size, old_layouts, programs, symbols,
                 weights, arrays, not_files):
        fill(folder)


if __name__ == "__main__":
    main()
