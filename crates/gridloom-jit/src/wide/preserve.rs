//! Calls that preserve all registers of their caller.

use super::codes::{VMOVUPS, VMOVUPS_STORE};
use super::encode::{AddressForm, Assembler, Code, Fields, Rm};
use super::inst::{RAX, RSP};
use memmap2::Mmap;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// General-purpose registers that a call does not preserve.
const GENERAL: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// Wraps a function of integers that returns nothing in one that preserves all registers, vectors
/// and masks included.
pub(crate) fn preserving(function: usize) -> Result<usize, String> {
    static MADE: Mutex<Option<HashMap<usize, Mmap>>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    if let Some(code) = made.get(&function) {
        return Ok(code.as_ptr() as usize);
    }
    let code = super::executable(&write(function))?;
    let entry = code.as_ptr() as usize;
    made.insert(function, code);
    Ok(entry)
}

fn write(function: usize) -> Vec<u8> {
    let mut assembler = Assembler::default();
    let vectors = |number: u8| 64 * i32::from(number);
    let masks = |number: u8| 2048 + 8 * i32::from(number);
    let general = |index: usize| 2048 + 64 + 8 * index as i32;
    let at = |displacement: i32| Rm::Memory(AddressForm::At { base: RSP, index: None, displacement });
    let fields = |reg: u8, rm: Rm| Fields { reg, vvvv: 0, rm, mask: 0, zero: false, broadcast: false };
    let bytes = (2048 + 64 + 128i32).to_le_bytes();
    // push rbp; mov rbp, rsp; sub rsp, bytes; and rsp, -64
    assembler.code.extend([0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec]);
    assembler.code.extend(bytes);
    assembler.code.extend([0x48, 0x83, 0xe4, 0xc0]);
    for stores in [true, false] {
        let (mov, vector, mask) = if stores { (0x89, VMOVUPS_STORE, 0x91) } else { (0x8b, VMOVUPS, 0x90) };
        for (index, number) in GENERAL.into_iter().enumerate() {
            let code = Code::legacy(0, 0, mov, true);
            assembler.instruction(code, fields(number, at(general(index))), 0);
        }
        for number in 0..32 {
            assembler.instruction(vector.of(64), fields(number, at(vectors(number))), 0);
        }
        for number in 0..8 {
            let code = Code::vex(1, 0, mask, true, 0);
            assembler.instruction(code, fields(number, at(masks(number))), 0);
        }
        if stores {
            // vzeroupper; mov rax, function; call rax
            assembler.code.extend([0xc5, 0xf8, 0x77, 0x48, 0xb8 | RAX]);
            assembler.code.extend((function as u64).to_le_bytes());
            assembler.code.extend([0xff, 0xd0]);
        }
    }
    // leave; ret
    assembler.code.extend([0xc9, 0xc3]);
    assembler.code
}
