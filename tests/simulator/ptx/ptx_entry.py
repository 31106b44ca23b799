"""One entry of a PTX text: its declarations, instructions and labels as lines of C++ (translate.py)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

REGISTER_TYPES = {".pred": "Pred", ".b16": "B16", ".b32": "B32", ".b64": "B64", ".f32": "F32", ".f64": "F64"}
SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid)\.([xyz])")
LABEL = re.compile(r"(\$?\w+):")
INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.]*)\s*(.*);")
REGISTERS = re.compile(r"\.reg (\.\w+)\s+(%[a-z]+)<(\d+)>;")

WIDTHS = {"8": 8, "16": 16, "32": 32, "64": 64}
ROUNDINGS = {"rn": "kNearest", "rz": "kZero", "rm": "kDown", "rp": "kUp"}
INTEGRAL_ROUNDINGS = {name[:1] + name[1] + "i": value for name, value in ROUNDINGS.items()}
COMPARISONS = {
    **{name: name for name in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split()},
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
}
# Approximate functions of f32, and what instructions.h calls them.
APPROXIMATE = {
    "rcp.approx": "reciprocal",
    "rsqrt.approx": "reciprocal_root",
    "sqrt.approx": "root",
    "ex2.approx": "power_of_two",
    "lg2.approx": "log_of_two",
    "sin.approx": "sine",
    "cos.approx": "cosine",
    "tanh.approx": "hyperbolic_tangent",
}

INTEGERS = "u16 u32 u64 s16 s32 s64".split()
SIGNED = "s16 s32 s64".split()
BITS = "b16 b32 b64".split()
FLOATS = "f32 f64".split()
# Opcodes without rounding and other modifiers: their types, the C++ function, the types of the result and operands (T:
# the instruction's own), and whether the function is told the line.
PLAIN = {
    "add": (INTEGERS, "add", "T T T"),
    "sub": (INTEGERS, "sub", "T T T"),
    "mul.lo": (INTEGERS, "mul_lo", "T T T"),
    "mul.hi": (INTEGERS, "mul_hi", "T T T"),
    "mad.lo": (INTEGERS, "mad_lo", "T T T T"),
    "div": (INTEGERS, "div", "T T T line"),
    "rem": (INTEGERS, "rem", "T T T line"),
    "abs": (SIGNED, "abs", "T T"),
    "neg": (SIGNED, "neg", "T T"),
    "max": (INTEGERS, "max", "T T T"),
    "min": (INTEGERS, "min", "T T T"),
    "and": ([*BITS, "pred"], "and_", "T T T"),
    "or": ([*BITS, "pred"], "or_", "T T T"),
    "xor": ([*BITS, "pred"], "xor_", "T T T"),
    "not": ([*BITS, "pred"], "not_", "T T"),
    "shl": (BITS, "shl", "T T u32"),
    "shr": ([*BITS, *INTEGERS], "shr", "T T u32"),
    "bfe": (INTEGERS[1:3] + SIGNED[1:], "bfe", "T T u32 u32"),
    "clz": (BITS[1:], "clz", "u32 T"),
    "popc": (BITS[1:], "popc", "u32 T"),
    "selp": ([*BITS, *INTEGERS, *FLOATS], "selp", "T T T pred"),
}
# Opcodes on floating-point numbers: whether they must round, and how many operands they have.
FLOATING = {
    "add": ("add", True, 2),
    "sub": ("sub", True, 2),
    "mul": ("mul", True, 2),
    "fma": ("fma", True, 3),
    "div": ("fdiv", True, 2),
    "sqrt": ("sqrt", True, 1),
    "rcp": ("rcp", True, 1),
    "abs": ("abs", False, 1),
    "neg": ("neg", False, 1),
    "max": ("max", False, 2),
    "min": ("min", False, 2),
}


class RefusedError(Exception):
    pass


def type_name(name: str) -> str:
    return name.capitalize()


def width(name: str) -> int:
    return 1 if name == "pred" else WIDTHS[name[1:]]


def agree(instruction: str, register: str) -> bool:
    """Whether a register of one type may stand where an instruction names the other (ISA, "Operand type checking")."""
    if "pred" in (instruction, register):
        return instruction == register
    if width(instruction) != width(register):
        return False
    return instruction[0] == "b" or register[0] == "b" or (instruction[0] == "f") == (register[0] == "f")


class Instruction(NamedTuple):
    guard: str
    opcode: str
    operands: list[str]


class Entry:
    """The translation of one entry: its lines of C++, and what its text declares."""

    def __init__(self, name: str, constants: dict[str, int]) -> None:
        self.name = name
        self.constants = constants
        self.parameter = ""
        self.parameter_bytes = 0
        self.registers: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[str, int]] = []
        self.code: list[tuple[int, str]] = []

    # Operands

    def register(self, text: str) -> tuple[str, str]:
        """The C++ variable and the type of a register."""
        match = re.fullmatch(r"(%[a-z]+)(\d+)", text)
        if match is None or match[1] not in self.registers:
            raise RefusedError(f"{text} is no declared register")
        kind, count = self.registers[match[1]]
        if int(match[2]) >= count:
            raise RefusedError(f"{text} is not among the {count} registers {match[1]}")
        return text[1:], kind[1:]

    def immediate(self, text: str, kind: str) -> str:
        if kind[0] == "f":
            match = re.fullmatch(r"0([fd])([0-9a-fA-F]+)", text)
            if match is None or len(match[2]) * 4 != width(kind) or (match[1] == "d") != (kind == "f64"):
                raise RefusedError(f"{text} is no {kind} number")
            return f"0x{match[2]}ull"
        if re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)", text) is None:
            raise RefusedError(f"{text} is neither a register nor a number of type {kind}")
        number = int(text, 0)
        if kind == "pred":
            return "true" if number else "false"
        bits = width(kind)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise RefusedError(f"{text} does not fit into {kind}")
        return f"{number % (1 << bits)}ull"

    def source(self, text: str, kind: str, *, wider: bool = False) -> str:
        """An operand that is read; a wider register gives its lower bits where the instruction takes those."""
        if not text.startswith("%"):
            return f"static_cast<Bits<{type_name(kind)}>>({self.immediate(text, kind)})"
        name, held = self.register(text)
        if not agree(kind, held) and not (wider and "f" not in kind + held and width(held) > width(kind)):
            raise RefusedError(f"{text} is of type {held}, the instruction wants {kind}")
        return f"static_cast<Bits<{type_name(kind)}>>({name})"

    def target(self, text: str, kind: str, *, wider: bool = False) -> tuple[str, str]:
        """A register that is written, and what its value goes through."""
        name, held = self.register(text)
        if wider and "f" not in kind + held and width(held) > width(kind):
            return name, f"extend<{type_name(kind)}, Bits<{type_name(held)}>>"
        if not agree(kind, held):
            raise RefusedError(f"{text} is of type {held}, the instruction gives {kind}")
        return name, ""

    def address(self, text: str, space: str) -> str:
        match = re.fullmatch(r"\[(%?\w+)(?:\+(-?\d+))?\]", text)
        if match is None:
            raise RefusedError(f"{text} is no address")
        base, offset = match[1], int(match[2] or 0)
        if base.startswith("%"):
            begin = self.source(base, "u64")
        elif space == "param" and base == self.parameter:
            begin = "machine.parameters()"
        elif space == "const" and base in self.constants:
            begin = f"address_of({base})"
        else:
            raise RefusedError(f"{base} does not lie in the {space} space")
        return f"{begin} + static_cast<std::uint64_t>({offset}ll)"

    # Instructions

    def translate(self, instruction: Instruction, line: int) -> str:
        for attempt in (self.control, self.memory, self.move, self.convert, self.compare, self.approximate,
                        self.floating, self.plain):  # fmt: skip
            statement = attempt(instruction, line)
            if statement is not None:
                guard = instruction.guard
                return f"if ({guard}) {{ {statement} }}" if guard else statement
        raise RefusedError(f"there is no instruction {instruction.opcode} in this translator")

    def need(self, operands: list[str], count: int) -> list[str]:
        if len(operands) != count:
            raise RefusedError(f"{len(operands)} operands where there are {count}")
        return operands

    def control(self, instruction: Instruction, line: int) -> str | None:
        if instruction.opcode == "ret":
            self.need(instruction.operands, 0)
            return "return;"
        if instruction.opcode not in ("bra", "bra.uni"):
            return None
        (label,) = self.need(instruction.operands, 1)
        self.jumps.append((label, line))
        back = f"machine.jump_back({line}); " if label in self.labels else ""
        return f"{back}goto {label};"

    def memory(self, instruction: Instruction, line: int) -> str | None:
        match = re.fullmatch(r"(ld|st)\.(param|const|global)(?:\.(v2|v4))?\.([bsuf]\d+)", instruction.opcode)
        if match is None:
            return None
        opcode, space, vector, kind = match.groups()
        if (opcode == "st" and space != "global") or int(kind[1:]) not in WIDTHS.values():
            return None
        count = int(vector[1]) if vector else 1
        operands = self.need(instruction.operands, count + 1)
        values, place = (operands[1:], operands[0]) if opcode == "st" else (operands[:-1], operands[-1])
        bits = f"Bits<{type_name(kind)}>"
        statements = [f"const std::uint64_t address = {self.address(place, space)};"]
        if count > 1:
            statements.append(f"machine.check_aligned(address, {count * width(kind) // 8}, {line});")
        for i, text in enumerate(values):
            at = f"address + {i * width(kind) // 8}"
            if opcode == "st":
                statements.append(f"machine.store_global<{bits}>({at}, {self.source(text, kind, wider=True)}, {line});")
            else:
                name, through = self.target(text, kind, wider=True)
                where = {"param": "parameter", "const": "constant", "global": "global"}[space]
                statements.append(f"{name} = {through}(machine.load_{where}<{bits}>({at}, {line}));")
        return "{ " + " ".join(statements) + " }"

    def move(self, instruction: Instruction, line: int) -> str | None:
        if instruction.opcode == "cvta.to.global.u64":  # a generic address of global memory is the address itself
            to, of = self.need(instruction.operands, 2)
            return f"{self.target(to, 'u64')[0]} = {self.source(of, 'u64')};"
        match = re.fullmatch(r"mov\.([bsuf](?:16|32|64)|pred)", instruction.opcode)
        if match is None:
            return None
        to, of = self.need(instruction.operands, 2)
        kind = match[1]
        name, _ = self.target(to, kind)
        special = SPECIAL.fullmatch(of)
        if special is not None and kind == "u32":
            return f"{name} = thread.{special[1]}.{special[2]};"
        if of == self.parameter and kind in ("b64", "u64"):
            return f"{name} = machine.parameters();"
        if of in self.constants and kind in ("b64", "u64"):
            return f"{name} = address_of({of});"
        return f"{name} = {self.source(of, kind)};"

    def mode(self, modifiers: list[str], *, roundings: dict[str, str]) -> tuple[str, bool]:
        """The Mode of the modifiers, and whether one of them is a rounding."""
        rounding = next((roundings[m] for m in modifiers if m in roundings), "kNone")
        known = [*roundings, "ftz", "sat"]
        doubled = len(set(modifiers)) != len(modifiers) or len(set(modifiers) & set(roundings)) > 1
        if doubled or any(m not in known for m in modifiers):
            raise RefusedError(f"modifiers {'.'.join(modifiers)} have no meaning together here")
        flush, saturate = ("true" if m in modifiers else "false" for m in ("ftz", "sat"))
        return f"Mode{{Round::{rounding}, {flush}, {saturate}}}", rounding != "kNone"

    def convert(self, instruction: Instruction, line: int) -> str | None:
        match = re.fullmatch(r"cvt((?:\.[a-z]+)*)\.([suf]\d+)\.([suf]\d+)", instruction.opcode)
        if match is None:
            return None
        to_kind, of_kind = match[2], match[3]
        if any(int(k[1:]) not in WIDTHS.values() or k in ("f8", "f16") for k in (to_kind, of_kind)):
            return None
        floats = (to_kind[0] == "f", of_kind[0] == "f")
        to_integral = floats[1] and (not floats[0] or to_kind == of_kind)
        modifiers = match[1].split(".")[1:]
        mode, rounds = self.mode(modifiers, roundings=INTEGRAL_ROUNDINGS if to_integral else ROUNDINGS)
        # "Rounding is required" wherever the target cannot hold each value of the source, and "illegal" elsewhere.
        required = floats == (True, False) or floats == (False, True) or (to_kind, of_kind) == ("f32", "f64")
        if rounds != required and not (to_kind == of_kind and all(floats)):
            raise RefusedError(f"{instruction.opcode}: a rounding {'is missing' if required else 'has no meaning'}")
        to, of = self.need(instruction.operands, 2)
        name, through = self.target(to, to_kind, wider=True)
        value = self.source(of, of_kind, wider=True)
        return f"{name} = {through}(cvt<{type_name(to_kind)}, {type_name(of_kind)}, {mode}>({value}));"

    def compare(self, instruction: Instruction, line: int) -> str | None:
        match = re.fullmatch(r"setp\.([a-z]+)(\.ftz)?\.([bsuf](?:16|32|64))", instruction.opcode)
        if match is None or match[1] not in COMPARISONS:
            return None
        comparison, flush, kind = COMPARISONS[match[1]], match[2], match[3]
        unsigned_only, float_only = match[1] in ("lo", "ls", "hi", "hs"), comparison not in "eq ne lt le gt ge".split()
        if (unsigned_only and kind[0] != "u") or (float_only and kind[0] != "f") or (flush and kind != "f32"):
            return None
        if kind[0] == "b" and comparison not in ("eq", "ne"):
            return None
        to, a, b = self.need(instruction.operands, 3)
        mode = f"Mode{{Round::kNone, {'true' if flush else 'false'}, false}}"
        call = f"setp<{type_name(kind)}, Compare::k{comparison.capitalize()}, {mode}>"
        return f"{self.target(to, 'pred')[0]} = {call}({self.source(a, kind)}, {self.source(b, kind)});"

    def approximate(self, instruction: Instruction, line: int) -> str | None:
        match = re.fullmatch(r"(\w+\.(?:approx|full))(\.ftz)?\.f32", instruction.opcode)
        if match is None:
            return None
        mode = f"Mode{{Round::kNone, {'true' if match[2] else 'false'}, false}}"
        if match[1] in ("div.approx", "div.full"):
            to, a, b = self.need(instruction.operands, 3)
            call = f"{match[1].replace('.', '_')}<F32, {mode}>({self.source(a, 'f32')}, {self.source(b, 'f32')})"
        elif match[1] in APPROXIMATE:
            to, a = self.need(instruction.operands, 2)
            call = f"approximate<{mode}, {APPROXIMATE[match[1]]}>({self.source(a, 'f32')})"
        else:
            return None
        return f"{self.target(to, 'f32')[0]} = {call};"

    def floating(self, instruction: Instruction, line: int) -> str | None:
        match = re.fullmatch(r"([a-z]+)((?:\.[a-z]+)*)\.(f32|f64)", instruction.opcode)
        if match is None or match[1] not in FLOATING:
            return None
        function, must_round, count = FLOATING[match[1]]
        modifiers = match[2].split(".")[1:]
        kind = match[3]
        if kind == "f64" and ("ftz" in modifiers or "sat" in modifiers):
            return None
        mode, rounds = self.mode(modifiers, roundings=ROUNDINGS)
        # add, sub and mul without one may be contracted by the assembler, so that two results are possible.
        if rounds != must_round:
            raise RefusedError(f"{instruction.opcode}: a rounding {'is missing' if must_round else 'has no meaning'}")
        to, *values = self.need(instruction.operands, count + 1)
        arguments = ", ".join(self.source(value, kind) for value in values)
        return f"{self.target(to, kind)[0]} = {function}<{type_name(kind)}, {mode}>({arguments});"

    def plain(self, instruction: Instruction, line: int) -> str | None:
        opcode, _, kind = instruction.opcode.rpartition(".")
        if opcode == "mul.wide" and kind in ("u16", "s16", "u32", "s32"):
            to, a, b = self.need(instruction.operands, 3)
            name = self.target(to, kind[0] + str(2 * width(kind)))[0]
            return f"{name} = mul_wide<{type_name(kind)}>({self.source(a, kind)}, {self.source(b, kind)});"
        if opcode in ("add.sat", "sub.sat") and kind == "s32":
            to, a, b = self.need(instruction.operands, 3)
            call = f"{opcode[:3]}<S32, Mode{{Round::kNone, false, true}}>"
            return f"{self.target(to, kind)[0]} = {call}({self.source(a, kind)}, {self.source(b, kind)});"
        if opcode not in PLAIN or kind not in PLAIN[opcode][0]:
            return None
        _, function, signature = PLAIN[opcode]
        types = [kind if t == "T" else t for t in signature.split() if t != "line"]
        operands = self.need(instruction.operands, len(types))
        arguments = [self.source(text, t) for text, t in zip(operands[1:], types[1:], strict=True)]
        if signature.endswith("line"):
            arguments.append(str(line))
        name = self.target(operands[0], types[0])[0]
        return f"{name} = {function}<{type_name(kind)}>({', '.join(arguments)});"

    # The text

    def statement(self, text: str, line: int) -> None:
        label = LABEL.fullmatch(text)
        if label is not None:
            if label[1] in self.labels:
                raise RefusedError(f"label {label[1]} stands here a second time")
            self.labels[label[1]] = line
            self.code.append((line, f"{label[1]}:;"))
            return
        registers = REGISTERS.fullmatch(text)
        if registers is not None and registers[1] in REGISTER_TYPES and not self.code:
            if registers[2] in self.registers:
                raise RefusedError(f"registers {registers[2]} are declared a second time")
            self.registers[registers[2]] = (registers[1], int(registers[3]))
            return
        match = INSTRUCTION.fullmatch(text)
        if match is None:
            raise RefusedError("neither an instruction, a label nor a declaration that is known")
        guard = ""
        if match[2]:
            guard = ("!" if match[1] else "") + self.source(match[2], "pred")
        operands = [part.strip() for part in re.sub(r"[{}]", "", match[4]).split(",")] if match[4] else []
        self.code.append((line, self.translate(Instruction(guard, match[3], operands), line)))

    def finish(self) -> None:
        for label, line in self.jumps:
            if label not in self.labels:
                raise RefusedError(f"jumps to {label} on line {line}, which is nowhere")
        if not self.parameter_bytes:
            raise RefusedError(f"{self.name} has no parameter block")

    def write(self, function: str, file: str) -> Iterator[str]:
        yield f"void {function}(const Thread& thread, Machine& machine) {{"
        for prefix, (kind, count) in self.registers.items():
            # No kernel may rely on what a register holds before it is written.
            pattern = f"static_cast<Bits<{REGISTER_TYPES[kind]}>>(0xA5A5A5A5A5A5A5A5)"
            start = "true" if kind == ".pred" else pattern
            for i in range(count):
                yield f"  Bits<{REGISTER_TYPES[kind]}> {prefix[1:]}{i} = {start};"
        for line, code in self.code:
            yield f'#line {line} "{file}"'
            yield f"  {code}"
        yield "}"
