//! Programs that the optimiser of recorded kernels could get wrong.

use crate::harness::*;

programs! {
    bits_that_were_rotated_are_negative_numbers_again_behind_a_loop(x: i32) -> i64, I32S, {
        let mut bits = x.rotate_right(1);
        let mut n = 0;
        while n < x % 5 {
            bits = bits.rotate_left(3);
            n += 1;
        }
        bits as i64
    }
    bits_that_were_rotated_are_negative_numbers_again_behind_a_branch(x: i32) -> [i64; 2], I32S, {
        let bits;
        if x % 3 == 0 {
            bits = (x / 7).rotate_left(9);
        } else {
            bits = (x % 11).rotate_right(2);
        }
        [bits as i64, (bits < 0) as i64]
    }
    long_bits_that_were_rotated_are_negative_numbers_again(x: i64) -> [i64; 2], I64S, {
        let mut bits = x.rotate_right(1);
        let mut n = 0;
        while n < x % 5 {
            bits = bits.rotate_left(3);
            n += 1;
        }
        [bits / 3, (bits < 0) as i64]
    }
    unsigned_numbers_from_signed_ones_are_not_negative(x: u32) -> [u64; 2], U32S, {
        let mut bits = (x as i32).wrapping_abs() as u32;
        let mut n = 0;
        while n < x % 5 {
            bits = (bits as i32).wrapping_neg() as u32;
            n += 1;
        }
        [bits as u64, (bits > 0x7fff_ffff) as u64]
    }
    a_variable_keeps_its_value_where_a_branch_leaves_the_loop_before_its_write(x: i32) -> i32, I32S, {
        let mut value = x;
        let mut n = 0;
        while n < 3 {
            n += 1;
            if x > 0 {
                if x > 100 {
                    break;
                }
                value = n;
            } else {
                value = 2;
            }
        }
        value
    }
    an_index_that_wraps_around_is_in_its_array(x: u32) -> u32, U32S, {
        let mut array = [5u32, 6, 7, 8];
        let at = x.wrapping_add(1);
        if at < 4 {
            array[at as usize] ^= x;
        }
        array[0].wrapping_add(array[(at % 4) as usize])
    }
}
