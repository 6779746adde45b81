//! `prmt` and `lop3`: arbitrary byte and bit selection.

/// How the selector of `prmt` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermuteMode {
    /// No suffix: four selectors of four bits, each a byte number and a flag that replicates that byte's sign.
    Index,
    /// `.f4e`: four bytes forward from the selected one.
    Forward4,
    /// `.b4e`: four bytes backward from the selected one.
    Backward4,
    /// `.rc8`: one byte, four times.
    Replicate8,
    /// `.ecl`: the bytes below the selected one become the selected one.
    EdgeClampLeft,
    /// `.ecr`: the bytes above the selected one become the selected one.
    EdgeClampRight,
    /// `.rc16`: one half, twice.
    Replicate16,
}

/// `prmt`: four bytes picked out of the eight in `b:a`.
#[inline]
pub fn prmt(a: u32, b: u32, selector: u32, mode: PermuteMode) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let picked = selector & 3;
    let pick = |lane: u32| -> u8 {
        let source = match mode {
            PermuteMode::Index => {
                let nibble = selector >> (4 * lane) & 0xf;
                let byte = bytes[(nibble & 7) as usize];
                return if nibble & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
            }
            PermuteMode::Forward4 => picked + lane,
            PermuteMode::Backward4 => picked.wrapping_sub(lane) & 7,
            PermuteMode::Replicate8 => picked,
            PermuteMode::EdgeClampLeft => picked.max(lane),
            PermuteMode::EdgeClampRight => picked.min(lane),
            PermuteMode::Replicate16 => (picked & 1) * 2 + (lane & 1),
        };
        bytes[source as usize]
    };
    u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
}

/// `lop3`: the function of three bits that `table` lists, applied bit by bit.
///
/// Bit `4a + 2b + c` of the table is the result for those three bits.
#[inline]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
        let on = |word: u32, bit: u32| if row >> bit & 1 == 1 { word } else { !word };
        result | (on(a, 2) & on(b, 1) & on(c, 0))
    })
}
