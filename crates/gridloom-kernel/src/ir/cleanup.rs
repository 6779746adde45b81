//! Makes a recorded kernel smaller: arrays whose indices are all known become registers, and unused
//! values are removed.

use std::collections::{HashMap, HashSet};

use super::{Base, Effect, Inst, Mem, Operand, Program, Reg, Stmt, Ty};

pub(crate) fn clean_up(program: &mut Program) {
    split_arrays(program);
    remove_unused(program);
}

/// Calls `visit` with every instruction.
fn each_inst(list: &mut [Stmt], visit: &mut impl FnMut(&mut Inst)) {
    for stmt in list {
        if let Stmt::Inst(inst) = stmt {
            visit(inst);
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| each_inst(inner, visit));
    }
}

/// Returns the element of a local array that an instruction loads or stores.
fn accessed(inst: &Inst) -> Option<(u32, Mem)> {
    inst.args.iter().find_map(|arg| match arg {
        Operand::Mem(mem) => match mem.base {
            Base::Local(array) => Some((array, *mem)),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the type that a load or store has in memory.
fn stored_type(suffix: &str) -> Option<Ty> {
    Some(match suffix {
        "u8" => Ty::U8,
        "s8" => Ty::I8,
        "u16" => Ty::U16,
        "s16" => Ty::I16,
        "b16" => Ty::F16,
        "u32" => Ty::U32,
        "s32" => Ty::I32,
        "u64" => Ty::U64,
        "s64" => Ty::I64,
        "f32" => Ty::F32,
        "f64" => Ty::F64,
        _ => return None,
    })
}

/// Keeps the arrays whose addresses are given to `vprintf`, or are in registers.
fn keep_addressed(list: &[Stmt], elements: &mut [Option<HashMap<i64, Ty>>]) {
    for stmt in list {
        if let Stmt::Print { arguments: Mem { base: Base::Local(array), .. }, .. } = stmt {
            elements[*array as usize] = None;
        }
        stmt.reads(&mut |operand| {
            if let Operand::Address(Base::Local(array)) = operand {
                elements[*array as usize] = None;
            }
        });
        stmt.inner().into_iter().for_each(|inner| keep_addressed(inner, elements));
    }
}

fn split_arrays(program: &mut Program) {
    // The type at each offset of each array; none for arrays that stay.
    let mut elements: Vec<Option<HashMap<i64, Ty>>> = vec![Some(HashMap::new()); program.locals.len()];
    keep_addressed(&program.body, &mut elements);
    each_inst(&mut program.body, &mut |inst| {
        let Some((array, mem)) = accessed(inst) else { return };
        let slot = &mut elements[array as usize];
        let Some(types) = slot else { return };
        match (mem.index, stored_type(inst.suffix)) {
            (None, Some(ty)) if types.get(&mem.offset).is_none_or(|known| *known == ty) => {
                types.insert(mem.offset, ty);
            }
            _ => *slot = None,
        }
    });
    // Elements that overlap are left in memory.
    for slot in &mut elements {
        let overlaps = slot.as_ref().is_some_and(|types| {
            let mut places: Vec<(i64, i64)> =
                types.iter().map(|(offset, ty)| (*offset, offset + i64::from(ty.bytes()))).collect();
            places.sort_unstable();
            places.windows(2).any(|pair| pair[0].1 > pair[1].0)
        });
        if overlaps {
            *slot = None;
        }
    }
    let mut registers: HashMap<(u32, i64), Reg> = HashMap::new();
    for (array, types) in elements.iter().enumerate() {
        for (offset, ty) in types.iter().flatten() {
            program.regs.push(*ty);
            registers.insert((array as u32, *offset), Reg(program.regs.len() as u32 - 1));
        }
        if types.is_some() {
            program.locals[array].bytes = 0;
        }
    }
    let regs = &program.regs;
    each_inst(&mut program.body, &mut |inst| {
        let Some((array, mem)) = accessed(inst) else { return };
        let Some(&register) = registers.get(&(array, mem.offset)) else { return };
        let ty = regs[register.0 as usize];
        let is_load = inst.dst.is_some();
        *inst = Inst {
            op: "mov".into(),
            suffix: ty.bit_suffix(),
            dst: Some(inst.dst.unwrap_or(register)),
            args: vec![if is_load { Operand::Reg(register) } else { inst.args[1] }],
            effect: Effect::None,
        };
    });
}

/// Removes instructions without effect whose results nobody reads.
fn remove_unused(program: &mut Program) {
    loop {
        let mut used = HashSet::new();
        collect(&program.body, &mut used);
        if !remove(&mut program.body, &used) {
            return;
        }
    }
}

fn collect(list: &[Stmt], used: &mut HashSet<Reg>) {
    for stmt in list {
        stmt.reads(&mut |operand| used.extend(operand.regs()));
        stmt.inner().into_iter().for_each(|inner| collect(inner, used));
    }
}

fn remove(list: &mut Vec<Stmt>, used: &HashSet<Reg>) -> bool {
    let before = list.len();
    list.retain(|stmt| match stmt {
        Stmt::Inst(Inst { dst: Some(dst), effect: Effect::None | Effect::Load, .. }) => used.contains(dst),
        Stmt::If { then, otherwise, .. } => !(then.is_empty() && otherwise.is_empty()),
        _ => true,
    });
    let mut changed = list.len() != before;
    for stmt in list {
        for inner in stmt.inner_mut().into_iter().flatten() {
            changed |= remove(inner, used);
        }
    }
    changed
}
