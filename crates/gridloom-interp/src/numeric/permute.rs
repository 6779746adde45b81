//! `prmt` and `lop3`: arbitrary byte and bit selection.

/// How the selector of `prmt` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermuteMode {
    /// No suffix: four selectors of four bits, each a byte number and a flag that replicates that
    /// byte's sign.
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

/// Computes `prmt`: four bytes picked out of the eight in `b:a`.
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

/// Computes `lop3`: the function of three bits that `table` lists, applied bit by bit.
///
/// Bit `4a + 2b + c` of the table is the result for those three bits.
#[inline]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
        let on = |word: u32, bit: u32| if row >> bit & 1 == 1 { word } else { !word };
        result | (on(a, 2) & on(b, 1) & on(c, 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Byte `n` of the pair holds `n`, so that a result reads as the list of bytes picked, high
    /// first.
    const A: u32 = 0x0302_0100;
    const B: u32 = 0x0706_0504;

    #[test]
    fn index_mode_picks_any_byte_of_the_pair() {
        assert_eq!(prmt(A, B, 0x7531, PermuteMode::Index), 0x0705_0301);
        assert_eq!(prmt(A, B, 0xffff_0246, PermuteMode::Index), 0x0002_0406);
    }

    #[test]
    fn index_mode_replicates_the_sign_where_bit_3_is_set() {
        assert_eq!(prmt(0x0000_8001, 0, 0x9898, PermuteMode::Index), 0xff00_ff00);
    }

    #[test]
    fn special_modes_follow_the_manuals_table() {
        let table = [
            (PermuteMode::Forward4, [0x0302_0100, 0x0403_0201, 0x0504_0302, 0x0605_0403]),
            (PermuteMode::Backward4, [0x0506_0700, 0x0607_0001, 0x0700_0102, 0x0001_0203]),
            (PermuteMode::Replicate8, [0x0000_0000, 0x0101_0101, 0x0202_0202, 0x0303_0303]),
            (PermuteMode::EdgeClampLeft, [0x0302_0100, 0x0302_0101, 0x0302_0202, 0x0303_0303]),
            (PermuteMode::EdgeClampRight, [0x0000_0000, 0x0101_0100, 0x0202_0100, 0x0302_0100]),
            (PermuteMode::Replicate16, [0x0100_0100, 0x0302_0302, 0x0100_0100, 0x0302_0302]),
        ];
        for (mode, rows) in table {
            for (selector, expected) in rows.into_iter().enumerate() {
                // Only the two low bits of the selector count.
                let selector = selector as u32 | 0xffff_fffc;
                assert_eq!(prmt(A, B, selector, mode), expected, "{mode:?} {selector}");
            }
        }
    }

    proptest! {
        #[test]
        fn lop3_looks_up_each_bit(a: u32, b: u32, c: u32, table: u8) {
            let expected = (0..32).fold(0_u32, |word, bit| {
                let row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
                word | u32::from(table >> row & 1) << bit
            });
            prop_assert_eq!(lop3(a, b, c, table), expected);
        }

        #[test]
        fn lop3_tables_of_known_functions(a: u32, b: u32, c: u32) {
            prop_assert_eq!(lop3(a, b, c, 0x80), a & b & c);
            prop_assert_eq!(lop3(a, b, c, 0xfe), a | b | c);
            prop_assert_eq!(lop3(a, b, c, 0x96), a ^ b ^ c);
            prop_assert_eq!(lop3(a, b, c, 0xca), (a & b) | (!a & c));
            prop_assert_eq!(lop3(a, b, c, 0xe8), (a & b) | (a & c) | (b & c));
        }
    }
}
