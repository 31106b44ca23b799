#!/usr/bin/env python3
"""The translator of PTX refuses what it does not know, with the line, and takes what it does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRANSLATOR = ROOT / "tests/simulator/ptx/translate.py"
KERNELS = ROOT / "src/ops/kernels/ptx"

TEXT = """.version 6.4
.target sm_52
.address_size 64
.weak .const .align 4 .b8 table[4] = {1, 2, 3, 4};
.visible .entry kernel(
\t.param .align 8 .b8 kernel_param_0[16]
)
{
\t.reg .pred \t%p<3>;
\t.reg .b16 \t%rs<3>;
\t.reg .b32 \t%r<5>;
\t.reg .f32 \t%f<4>;
\t.reg .b64 \t%rd<4>;
\t.reg .f64 \t%fd<3>;

START:
\tld.param.u64 \t%rd1, [kernel_param_0];
\tBODY
\tret;
}
"""


def translate(text: str) -> tuple[str, str]:
    """The C++ of a text, and the last line of what the translator says of it."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "text.ptx"), Path(folder, "text.cpp")
        source.write_text(text)
        ended = subprocess.run(
            [sys.executable, TRANSLATOR, source, output], capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            return "", ended.stderr.strip().splitlines()[-1].replace(str(source), "text.ptx")
        return output.read_text(), ""


def body(*lines: str) -> str:
    return TEXT.replace("BODY", "\n\t".join(lines))


class Taken(unittest.TestCase):
    def test_each_kind_of_instruction(self) -> None:
        for line in [
            "add.s64 %rd2, %rd1, -1;",
            "add.rn.f32 %f1, %f2, 0f3F800000;",
            "fma.rz.ftz.f32 %f1, %f2, %f3, %f1;",
            "div.full.ftz.f32 %f1, %f2, %f3;",
            "ex2.approx.f32 %f1, %f2;",
            "cvt.rzi.sat.s32.f32 %r1, %f1;",
            "cvt.rn.f32.f64 %f1, %fd1;",
            "cvt.s64.s8 %rd1, %rs1;",
            "setp.ltu.f32 %p1, %f1, %f2;",
            "@!%p1 bra START;",
            "@%p1 mov.u32 %r1, %tid.x;",
            "ld.global.v2.u64 {%rd2, %rd3}, [%rd1+16];",
            "st.global.u8 [%rd1], %rs1;",
            "mov.u64 %rd2, table;",
            "shr.s64 %rd2, %rd1, 63;",
            "mov.pred %p1, -1;",
        ]:
            self.assertEqual(translate(body(line))[1], "", line)

    def test_our_kernels(self) -> None:
        for source in sorted(KERNELS.glob("*.ptx")):
            self.assertEqual(translate(source.read_text())[1], "", source.name)


class Refused(unittest.TestCase):
    def expect(self, text: str, line: int, word: str) -> None:
        code, message = translate(text)
        self.assertEqual(code, "", f"taken: {word}")
        self.assertTrue(message.startswith(f"text.ptx:{line}: "), message)
        self.assertIn(word, message)

    def test_what_it_does_not_know(self) -> None:
        for line, word in {
            "bar.sync 0;": "no instruction bar.sync",
            "atom.global.add.u32 %r1, [%rd1], 1;": "no instruction atom",
            "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;": "no instruction shfl",
            "ld.shared.u32 %r1, [%rd1];": "no instruction ld.shared",
            "call foo, (%r1);": "no instruction call",
            "add.cc.u32 %r1, %r2, %r3;": "no instruction add.cc",
            "add.f32 %f1, %f2, %f3;": "a rounding is missing",
            "neg.rn.f32 %f1, %f2;": "has no meaning",
            "add.rn.rz.f32 %f1, %f2, %f3;": "no meaning together",
            "cvt.f32.f64 %f1, %fd1;": "a rounding is missing",
            "cvt.rn.f64.f32 %fd1, %f1;": "has no meaning",
            "setp.lt.b32 %p1, %r1, %r2;": "no instruction setp.lt.b32",
            "setp.ltu.s32 %p1, %r1, %r2;": "no instruction setp.ltu.s32",
            ".local .b8 stack[16];": "neither an instruction",
            "add.s32 %r1, %r2, %r3": "neither an instruction",
        }.items():
            with self.subTest(line):
                self.expect(body(line), 18, word)

    def test_operands_that_do_not_fit(self) -> None:
        for line, word in {
            "add.s32 %r1, %r2;": "2 operands where there are 3",
            "add.s32 %r1, %rd2, %r3;": "%rd2 is of type b64",
            "add.s32 %f1, %r2, %r3;": "%f1 is of type f32",
            "add.rn.f32 %f1, %f2, %fd1;": "%fd1 is of type f64",
            "add.s32 %r1, %r2, %r5;": "not among the 5 registers %r",
            "add.s32 %r1, %r2, %x1;": "no declared register",
            "add.s32 %r1, %r2, 4294967296;": "does not fit into s32",
            "add.rn.f32 %f1, %f2, 1;": "no f32 number",
            "add.rn.f32 %f1, %f2, 0f3F8000;": "no f32 number",
            "add.rn.f64 %fd1, %fd2, 0f3F800000;": "no f64 number",
            "setp.eq.s32 %r1, %r2, %r3;": "the instruction gives pred",
            "ld.param.u64 %rd2, [other_param_0];": "does not lie in the param space",
            "ld.const.u32 %r2, [nothing];": "does not lie in the const space",
            "ld.global.u32 %r2, [%r1];": "%r1 is of type b32",
            "mov.u32 %r1, %laneid;": "no declared register",
        }.items():
            with self.subTest(line):
                self.expect(body(line), 18, word)

    def test_jumps_and_labels(self) -> None:
        self.expect(body("bra NOWHERE;"), 20, "jumps to NOWHERE on line 18")
        self.expect(body("START:"), 18, "a second time")

    def test_other_forms_of_a_text(self) -> None:
        whole = body("mov.b32 %r1, 1;")
        self.expect(whole.rsplit("}", 1)[0], 19, "ends within kernel")
        self.expect(whole.replace(".align 8 .b8 kernel_param_0[16]", ".u64 kernel_param_0"), 6, "one parameter")
        self.expect(whole.replace("kernel_param_0[16]\n", "kernel_param_0[16],\n"), 6, "one parameter")
        self.expect(whole.replace("{1, 2, 3, 4}", "{1, 2, 3}"), 4, "4 bytes")
        self.expect(whole.replace(".target sm_52", ".target sm_52\n.extern .func f;"), 21, "other directives")
        self.expect("", 0, "other directives")
        self.expect(whole + whole[whole.index(".visible") :], 21, "a second time")
        self.expect(
            whole.replace("\t.reg .b32 \t%r<5>;", "\t.reg .b32 \t%r<5>;\n\t.reg .b16 \t%r<5>;"), 12, "second time"
        )


if __name__ == "__main__":
    unittest.main()
