"""What an entry of LAUNCHES, in a printed Triton module, says for given sizes. Needs nothing but Python."""


def scratch_of(entry, symbols):
    """Memory that the launches of a kernel pass on: name, dtype and elements of each."""
    return [(name, dtype, elements(*symbols)) for name, dtype, elements in entry.get("scratch", [])]


def taken_launches(entry, symbols):
    """The launches that these sizes take, in order: its place in the table, its row, the values of its symbols,
    its number of programs, and its compile-time constants."""
    sizes = dict(zip(entry["symbols"], symbols, strict=True))
    sizes |= {name: value(*symbols) for name, value in entry.get("sizes", [])}
    for place, step in enumerate(entry["launches"]):
        values = [sizes[name] for name in step["symbols"]]
        programs = step["programs"](*values)
        if programs > 0:
            yield place, step, values, programs, step["constants"](*values) if step["constants"] else {}
