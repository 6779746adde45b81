use gridloom::prelude::*;

use crate::support::{Bench, for_each_device};

const PTX: &str = include_str!("printing.ptx");

#[test]
fn printf_returns_how_many_arguments_it_had() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<i32>(1)?;
        bench.run::<(PtrMut<i32>, i32)>("print_count", LaunchConfig::one(), (&out, 7))?;
        assert_eq!(out.to_vec()?, [2]);
        Ok(())
    });
}
