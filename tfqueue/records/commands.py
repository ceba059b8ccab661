"""The commands ``tfqueue records ...``: parse, call, print, exit code (0 done, 1 damaged, 2 could not be done)."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds ``records`` and its commands to the sub-parsers of ``tfqueue``."""
    parser = subparsers.add_parser(
        "records",
        help="TFRecord files: write, describe, head, count, verify, index, salvage",
        description="Writes TFRecord files, looks into them, checks and repairs them.",
    )
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)

    write = _add(commands, "write", _write, "write images or arrays", paths=False)
    write.add_argument("target", metavar="OUT", help="the file, or the name of the shards, such as train.tfrecord")
    write.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder with one sub-folder a class, a pattern of image files, a CSV file of paths and labels, or a "
        ".npz file of arrays with equal first axis",
    )
    _add_write_options(write)

    describe = _add(commands, "describe", _describe, "say what is in records, and print the spec that parses them")
    describe.add_argument("--records", type=_positive, metavar="N", help="look at the first N records only")

    head = _add(commands, "head", _head, "print the first records")
    head.add_argument("-n", "--records", type=_positive, metavar="N", default=5, help="how many (default: 5)")

    _add(commands, "count", _count, "count records, by their headers")

    verify = _add(commands, "verify", _verify, "check every frame of files; exit code 1 if something is wrong")
    verify.add_argument("--examples", action="store_true", help="each record must be a tf.train.Example, too")

    _add(commands, "index", _index, "make the index that a reader needs to get records by number")

    salvage = _add(commands, "salvage", _salvage, "keep every whole record of a damaged file", paths=False)
    salvage.add_argument("source", metavar="SRC", help="the damaged file")
    salvage.add_argument("target", metavar="DST", help="the new file")
    salvage.add_argument("--overwrite", action="store_true", help="replace DST if it exists")


def _add(commands: Any, name: str, run: Any, words: str, *, paths: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=words[0].upper() + words[1:] + "."
    )
    if paths:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or a pattern")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _add_write_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shards", type=_positive, metavar="N", help="number of shards")
    parser.add_argument("--records-per-shard", type=_positive, metavar="N", help="records in each shard but the last")
    parser.add_argument("--bytes-per-shard", type=_positive, metavar="N", help="size that no shard exceeds")
    parser.add_argument("--compression", metavar="KIND", help="GZIP, ZLIB or NONE (default: GZIP if OUT ends in .gz)")
    parser.add_argument("--overwrite", action="store_true", help="replace what exists under this name")
    parser.add_argument(
        "--resume", action="store_true", help="keep the shards that an interrupted command has finished"
    )
    parser.add_argument("--workers", type=_positive, metavar="N", default=1, help="shards written at the same time")
    arrays = parser.add_argument_group("arrays")
    arrays.add_argument("--layout", choices=("bytes", "list"), default="bytes", help="how arrays are stored")
    arrays.add_argument("--narrow", action="store_true", help="round float64 to float32 in lists")
    images = parser.add_argument_group("images")
    images.add_argument("--split", type=_split, metavar="PART=F,...", help="such as train=0.7,val=0.2,test=0.1")
    images.add_argument("--stratified", action="store_true", help="divide each class by itself")
    images.add_argument("--shuffle", action="store_true", help="put the images in an order given by --seed")
    images.add_argument("--seed", type=int, default=0, help="seed of the order and the split (default: 0)")
    images.add_argument("--size", type=_size, metavar="HxW", help="store pixels of this size, not the encoded file")
    images.add_argument(
        "--kernel", choices=("nearest", "linear", "cubic", "area", "lanczos4"), default="area", help="how to resize"
    )
    images.add_argument(
        "--colour", choices=("RGB", "BGR", "GRAY"), default="RGB", help="order of the channels of pixels"
    )
    images.add_argument("--apply-orientation", action="store_true", help="turn images as their EXIF data say")
    images.add_argument(
        "--unreadable", choices=("skip", "raise"), default="skip", help="what to do with files that are no image"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return value


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.lower().partition("x")
    try:
        return _positive(height), _positive(width)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no HEIGHTxWIDTH, such as 224x224") from None


def _split(text: str) -> dict[str, float]:
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(fraction) for name, _, fraction in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} does not look like train=0.7,val=0.2,test=0.1") from None


def _write(options: argparse.Namespace) -> int:
    common = {
        name: getattr(options, name)
        for name in ("shards", "records_per_shard", "bytes_per_shard", "compression", "overwrite", "resume", "workers")
    }
    written: list[str] | dict[str, list[str]]
    if options.source.lower().endswith(".npz"):
        from tfqueue.records.arrays import write_arrays

        arrays = _load_arrays(options.source)
        written = write_arrays(options.target, arrays, layout=options.layout, narrow=options.narrow, **common)
    else:
        from tfqueue.records.images import write_images

        names = (
            "split",
            "stratified",
            "shuffle",
            "seed",
            "size",
            "kernel",
            "colour",
            "apply_orientation",
            "unreadable",
        )
        for name in names:
            common[name] = getattr(options, name)
        written = write_images(options.target, options.source, **common)
    if options.json:
        _print_json(written)
    else:
        parts = written if isinstance(written, dict) else {"": written}
        for part, paths in parts.items():
            for path in paths:
                print(f"{part}: {path}" if part else path)
    return 0


def _load_arrays(name: str) -> dict[str, Any]:
    import zipfile

    import numpy as np

    from tfqueue.errors import RecordError

    try:
        # Pickled objects would be code.
        with np.load(name, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise RecordError(f"{name!r} is no .npz file that can be read: {error}", file=name) from error


def _describe(options: argparse.Namespace) -> int:
    from tfqueue.records.schema import describe

    schema = describe(options.paths, records=options.records)
    if options.json:
        _print_json(schema.to_dict())
    else:
        print(schema)
        if any(feature.kind == "mixed" for feature in (*schema.features, *schema.sequences)):
            print("\nNo spec parses these records: a feature is stored in lists of different kinds.")
        else:
            print(f"\n{schema.spec_source()}")
    return 0


def _head(options: argparse.Namespace) -> int:
    from tfqueue.records.text import as_json, first, head

    if options.json:
        rows = first(options.paths, records=options.records)
        _print_json(
            [{**row, "features": {name: as_json(value) for name, value in row["features"].items()}} for row in rows]
        )
    else:
        print(head(options.paths, records=options.records))
    return 0


def _count(options: argparse.Namespace) -> int:
    from tfqueue.records.paths import expand
    from tfqueue.records.reader import count

    counts = {name: count(name) for name in expand(options.paths)}
    total = sum(counts.values())
    if options.json:
        _print_json({"records": total, "files": counts})
    else:
        for name, number in counts.items() if len(counts) > 1 else ():
            print(f"{number} {name}")
        print(f"{total} total" if len(counts) > 1 else total)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from tfqueue.records.verification import verify

    found = verify(options.paths, examples=options.examples)
    if options.json:
        _print_json(found.to_dict())
    else:
        print(found)
    return 0 if found.ok else 1


def _index(options: argparse.Namespace) -> int:
    from tfqueue.errors import RecordError
    from tfqueue.records.index import file_index, load_index
    from tfqueue.records.paths import expand, index_name

    made = []
    for name in expand(options.paths):
        made.append((name, file_index(name)))
        # A reader can do without; here the index is what was asked for.
        if load_index(name, os.stat(name)) is None:
            raise RecordError(f"the index {index_name(name)!r} cannot be written; may you write there?", file=name)
    if options.json:
        _print_json([{"file": name, "index": index_name(name), "records": len(index)} for name, index in made])
    else:
        for name, index in made:
            print(f"{len(index)} records of {name} are in {index_name(name)}")
    return 0


def _salvage(options: argparse.Namespace) -> int:
    from tfqueue.records.salvaging import salvage

    done = salvage(options.source, options.target, overwrite=options.overwrite)
    if options.json:
        _print_json(done.to_dict())
    else:
        print(done)
    return 1 if done.lost else 0


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=True))
