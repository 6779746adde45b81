//! The machine instructions that the generator uses, named as in the manuals.

use super::encode::Code;

macro_rules! codes {
    ($($name:ident = $kind:ident($map:expr, $prefix:expr, $opcode:expr, $wide:expr);)*) => {
        $(pub(super) const $name: Code = Code::$kind($map, $prefix, $opcode, $wide != 0);)*
    };
}

codes! {
    // Moves.
    VMOVUPS = either(1, 0, 0x10, 0);
    VMOVUPS_STORE = either(1, 0, 0x11, 0);
    VMOVAPS = either(1, 0, 0x28, 0);
    VMOVSS = either(1, 2, 0x10, 0);
    VMOVSS_STORE = either(1, 2, 0x11, 0);
    VMOVSD = either(1, 3, 0x10, 1);
    VMOVSD_STORE = either(1, 3, 0x11, 1);
    VMOVDQU32 = evex(1, 2, 0x6f, 0);
    VMOVDQU64 = evex(1, 2, 0x6f, 1);
    VMOVDQU32_STORE = evex(1, 2, 0x7f, 0);
    VMOVDQU64_STORE = evex(1, 2, 0x7f, 1);
    VMOVD = either(1, 1, 0x6e, 0);
    VMOVQ = evex(1, 1, 0x6e, 1);
    VMOVD_OUT = either(1, 1, 0x7e, 0);
    VMOVQ_OUT = evex(1, 1, 0x7e, 1);
    VMOVQ_LOW = either(1, 2, 0x7e, 1);
    VPBROADCASTD_FROM = evex(2, 1, 0x7c, 0);
    VPBROADCASTQ_FROM = evex(2, 1, 0x7c, 1);
    VPBROADCASTD = evex(2, 1, 0x58, 0);
    VPBROADCASTQ = evex(2, 1, 0x59, 1);
    VPINSRD = evex(3, 1, 0x22, 0);
    VPINSRQ = evex(3, 1, 0x22, 1);
    VPEXTRD = evex(3, 1, 0x16, 0);
    VPEXTRQ = evex(3, 1, 0x16, 1);
    VPEXTRB = evex(3, 1, 0x14, 0);
    VPEXTRW = evex(3, 1, 0x15, 0);
    VINSERTPS = evex(3, 1, 0x21, 0);
    VEXTRACTI32X4 = either(3, 1, 0x39, 0);
    VEXTRACTI64X4 = evex(3, 1, 0x3b, 1);
    VINSERTI32X4 = either(3, 1, 0x38, 0);
    VINSERTI64X4 = evex(3, 1, 0x3a, 1);
    // Accesses of each element of a vector, by indices of 32 bits, or by addresses of 64 bits.
    VPGATHERDD = evex(2, 1, 0x90, 0);
    VPGATHERQD = evex(2, 1, 0x91, 0);
    VPGATHERQQ = evex(2, 1, 0x91, 1);
    VPSCATTERDD = evex(2, 1, 0xa0, 0);
    VPSCATTERQD = evex(2, 1, 0xa1, 0);
    VPSCATTERQQ = evex(2, 1, 0xa1, 1);
    // Integers.
    VPADDD = either(1, 1, 0xfe, 0);
    VPADDQ = either(1, 1, 0xd4, 1);
    VPSUBD = either(1, 1, 0xfa, 0);
    VPSUBQ = either(1, 1, 0xfb, 1);
    VPMULLD = either(2, 1, 0x40, 0);
    VPMULLQ = evex(2, 1, 0x40, 1);
    VPMULDQ = evex(2, 1, 0x28, 1);
    VPMULUDQ = either(1, 1, 0xf4, 1);
    VPLZCNTD = evex(2, 1, 0x44, 0);
    VPLZCNTQ = evex(2, 1, 0x44, 1);
    VPOPCNTD = evex(2, 1, 0x55, 0);
    VPOPCNTQ = evex(2, 1, 0x55, 1);
    VPMADDWD = either(1, 1, 0xf5, 0);
    VPANDD = either(1, 1, 0xdb, 0);
    VPANDQ = either(1, 1, 0xdb, 1);
    VPORD = either(1, 1, 0xeb, 0);
    VPORQ = either(1, 1, 0xeb, 1);
    VPXORD = either(1, 1, 0xef, 0);
    VPXORQ = either(1, 1, 0xef, 1);
    VPMINSD = either(2, 1, 0x39, 0);
    VPMINUD = either(2, 1, 0x3b, 0);
    VPMAXSD = either(2, 1, 0x3d, 0);
    VPMAXUD = either(2, 1, 0x3f, 0);
    VPMINSQ = evex(2, 1, 0x39, 1);
    VPMINUQ = evex(2, 1, 0x3b, 1);
    VPMAXSQ = evex(2, 1, 0x3d, 1);
    VPMAXUQ = evex(2, 1, 0x3f, 1);
    VPABSD = either(2, 1, 0x1e, 0);
    VPABSQ = evex(2, 1, 0x1f, 1);
    VPTERNLOGD = evex(3, 1, 0x25, 0);
    VPTERNLOGQ = evex(3, 1, 0x25, 1);
    // Shifts by a constant, by the first element, and by each.
    SHIFT_IMM_W = evex(1, 1, 0x71, 0);
    SHIFT_IMM_D = evex(1, 1, 0x72, 0);
    SHIFT_IMM_Q = evex(1, 1, 0x73, 1);
    VPSRAQ_IMM = evex(1, 1, 0x72, 1);
    VPSLLW = either(1, 1, 0xf1, 0);
    VPSRLW = either(1, 1, 0xd1, 0);
    VPSRAW = either(1, 1, 0xe1, 0);
    VPSLLD = either(1, 1, 0xf2, 0);
    VPSRLD = either(1, 1, 0xd2, 0);
    VPSRAD = either(1, 1, 0xe2, 0);
    VPSLLQ = either(1, 1, 0xf3, 1);
    VPSRLQ = either(1, 1, 0xd3, 1);
    VPSRAQ = evex(1, 1, 0xe2, 1);
    VPROLD_IMM = evex(1, 1, 0x72, 0);
    VPSLLVD = evex(2, 1, 0x47, 0);
    VPSLLVQ = evex(2, 1, 0x47, 1);
    VPSRLVD = evex(2, 1, 0x45, 0);
    VPSRLVQ = evex(2, 1, 0x45, 1);
    VPSRAVD = evex(2, 1, 0x46, 0);
    VPSRAVQ = evex(2, 1, 0x46, 1);
    // Floats.
    VSQRTPS = either(1, 0, 0x51, 0);
    VSQRTPD = either(1, 1, 0x51, 1);
    VSQRTSS = either(1, 2, 0x51, 0);
    VSQRTSD = either(1, 3, 0x51, 1);
    VRNDSCALEPS = evex(3, 1, 0x08, 0);
    VRNDSCALEPD = evex(3, 1, 0x09, 1);
    VRNDSCALESS = evex(3, 1, 0x0a, 0);
    VRNDSCALESD = evex(3, 1, 0x0b, 1);
    // Conversions.
    VCVTPS2PD = either(1, 0, 0x5a, 0);
    VCVTPD2PS = either(1, 1, 0x5a, 1);
    VCVTSS2SD = either(1, 2, 0x5a, 0);
    VCVTSD2SS = either(1, 3, 0x5a, 1);
    VCVTDQ2PS = either(1, 0, 0x5b, 0);
    VCVTUDQ2PS = evex(1, 3, 0x7a, 0);
    VCVTQQ2PS = evex(1, 0, 0x5b, 1);
    VCVTUQQ2PS = evex(1, 3, 0x7a, 1);
    VCVTDQ2PD = either(1, 2, 0xe6, 0);
    VCVTUDQ2PD = evex(1, 2, 0x7a, 0);
    VCVTQQ2PD = evex(1, 2, 0xe6, 1);
    VCVTUQQ2PD = evex(1, 2, 0x7a, 1);
    VCVTTPS2DQ = either(1, 2, 0x5b, 0);
    VCVTTPS2UDQ = evex(1, 0, 0x78, 0);
    VCVTTPD2DQ = either(1, 1, 0xe6, 1);
    VCVTTPD2UDQ = evex(1, 0, 0x78, 1);
    VCVTTPS2QQ = evex(1, 1, 0x7a, 0);
    VCVTTPS2UQQ = evex(1, 1, 0x78, 0);
    VCVTTPD2QQ = evex(1, 1, 0x7a, 1);
    VCVTTPD2UQQ = evex(1, 1, 0x78, 1);
    VPMOVSXDQ = either(2, 1, 0x25, 0);
    VPMOVZXDQ = either(2, 1, 0x35, 0);
    VPMOVSXBD = either(2, 1, 0x21, 0);
    VPMOVZXBD = either(2, 1, 0x31, 0);
    VPMOVSXWD = either(2, 1, 0x23, 0);
    VPMOVZXWD = either(2, 1, 0x33, 0);
    VPMOVSXBW = either(2, 1, 0x20, 0);
    VPMOVZXBW = either(2, 1, 0x30, 0);
    VPMOVDB = evex(2, 2, 0x31, 0);
    VPMOVDW = evex(2, 2, 0x33, 0);
    // Permutations.
    VPERMI2D = evex(2, 1, 0x76, 0);
    VPERMD = evex(2, 1, 0x36, 0);
    VPERMI2B = evex(2, 1, 0x75, 0);
    VPERMB = evex(2, 1, 0x8d, 0);
    VPSHUFD = either(1, 1, 0x70, 0);
    VPUNPCKLDQ = either(1, 1, 0x62, 0);
    VPUNPCKHDQ = either(1, 1, 0x6a, 0);
    VPUNPCKLQDQ = either(1, 1, 0x6c, 1);
    VPUNPCKHQDQ = either(1, 1, 0x6d, 1);
    VPSHUFB = either(2, 1, 0x00, 0);
    // Comparisons, and masks as vectors.
    VPCMPD = evex(3, 1, 0x1f, 0);
    VPCMPUD = evex(3, 1, 0x1e, 0);
    VPCMPQ = evex(3, 1, 0x1f, 1);
    VPCMPUQ = evex(3, 1, 0x1e, 1);
    VCMPPS = evex(1, 0, 0xc2, 0);
    VCMPPD = evex(1, 1, 0xc2, 1);
    VCMPSS = evex(1, 2, 0xc2, 0);
    VCMPSD = evex(1, 3, 0xc2, 1);
    VPTESTMD = evex(2, 1, 0x27, 0);
    VPTESTMQ = evex(2, 1, 0x27, 1);
    VPTESTNMD = evex(2, 2, 0x27, 0);
    VPTESTNMQ = evex(2, 2, 0x27, 1);
    VPBLENDMD = evex(2, 1, 0x64, 0);
    VPBLENDMQ = evex(2, 1, 0x64, 1);
    VPMOVM2D = evex(2, 2, 0x38, 0);
    VPMOVM2Q = evex(2, 2, 0x38, 1);
    VPMOVD2M = evex(2, 2, 0x39, 0);
    VPMOVQ2M = evex(2, 2, 0x39, 1);
    VPMOVB2M = evex(2, 2, 0x29, 0);
    VPMOVW2M = evex(2, 2, 0x29, 1);
}

/// Returns the code for arithmetic on floats: of vectors or of one number, in single or double
/// precision.
pub(super) fn float(opcode: u8, double: bool, scalar: bool) -> Code {
    let prefix = match (scalar, double) {
        (false, false) => 0,
        (false, true) => 1,
        (true, false) => 2,
        (true, true) => 3,
    };
    Code::either(1, prefix, opcode, double)
}

/// Returns the code for a fused multiplication and addition. `opcode` is that of the form on
/// vectors.
pub(super) fn fused(opcode: u8, double: bool, scalar: bool) -> Code {
    Code::either(2, 1, opcode + u8::from(scalar), double)
}

/// Returns the code for arithmetic on general-purpose registers, with a register or memory as its
/// second operand.
pub(super) fn arithmetic(opcode: u8, wide: bool) -> Code {
    Code::legacy(0, 0, opcode, wide)
}

/// Returns the code for an operation on masks of so many elements, of which there are forms for
/// eight and sixteen.
pub(super) fn of_masks(opcode: u8, elements: u32) -> Code {
    Code::vex(1, u8::from(elements <= 8), opcode, false, 1)
}
