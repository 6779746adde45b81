//! Atomic operations whose result is unused: they return nothing.

use std::collections::HashSet;

use crate::ir::{Inst, Program, Reg, Stmt};

pub(super) fn run(program: &mut Program) {
    let mut read = HashSet::new();
    reads(&program.body, &mut read);
    replace(&mut program.body, &read);
}

fn reads(list: &[Stmt], into: &mut HashSet<Reg>) {
    for stmt in list {
        stmt.reads(&mut |operand| into.extend(operand.regs()));
        stmt.inner().into_iter().for_each(|inner| reads(inner, into));
    }
}

/// Returns the form without result of an atomic operation, if there is one for its memory order.
fn without_result(op: &str) -> Option<String> {
    let rest = op.strip_prefix("atom.")?;
    let has_order = rest.starts_with("relaxed.") || rest.starts_with("release.");
    let has_operation =
        ["add", "min", "max", "and", "or", "xor"].iter().any(|name| rest.rsplit('.').next() == Some(name));
    (has_order && has_operation).then(|| format!("red.{rest}"))
}

fn replace(list: &mut [Stmt], read: &HashSet<Reg>) {
    for stmt in list {
        if let Stmt::Inst(Inst { op, dst: dst @ Some(_), .. }) = stmt
            && dst.is_some_and(|dst| !read.contains(&dst))
            && let Some(name) = without_result(op)
        {
            *op = name.into();
            *dst = None;
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| replace(inner, read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_that_have_such_a_form_lose_their_result() {
        assert_eq!(
            without_result("atom.relaxed.cta.shared.add").as_deref(),
            Some("red.relaxed.cta.shared.add")
        );
        assert_eq!(without_result("atom.release.gpu.max").as_deref(), Some("red.release.gpu.max"));
        for op in
            ["atom.acq_rel.gpu.global.add", "atom.relaxed.gpu.global.cas", "atom.relaxed.gpu.global.exch"]
        {
            assert_eq!(without_result(op), None);
        }
    }
}
