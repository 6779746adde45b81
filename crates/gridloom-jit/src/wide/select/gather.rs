//! Selection of gathers and scatters: accesses at an address of its own for each element of a
//! vector.

use super::super::intrinsic::Intrinsic;
use super::*;

/// The addresses of the elements of a vector.
#[derive(Clone, Copy)]
struct ElementAddresses {
    base: Option<VReg>,
    index: VReg,
    log: u8,
    mask: VReg,
    displacement: i32,
}

impl Selector<'_> {
    pub(super) fn access_each(
        &mut self,
        intrinsic: Intrinsic,
        args: &[Value],
        into: Option<VReg>,
    ) -> Result<(), Unsupported> {
        let is_scatter = into.is_none();
        let (values, args) = if is_scatter { (Some(args[0]), &args[1..]) } else { (None, args) };
        let offset = args.last().and_then(|&offset| self.constant_of(offset));
        let Some(displacement) = offset.and_then(|offset| i32::try_from(offset).ok()) else {
            return self.unsupported();
        };
        let is_near = matches!(intrinsic, Intrinsic::GatherNear | Intrinsic::ScatterNear);
        let bytes = self.type_of(args[usize::from(is_near)]).bytes();
        let places = |selector: &mut Self,
                      base: Option<Value>,
                      index: Value,
                      mask: Value|
         -> Result<ElementAddresses, Unsupported> {
            let mask = selector.mask_of_value(mask)?;
            let base = base.map(|base| selector.register(base));
            Ok(ElementAddresses { base, index: selector.register(index), log: 0, mask, displacement })
        };
        match intrinsic {
            Intrinsic::GatherNear | Intrinsic::ScatterNear => {
                let mut places = places(self, Some(args[0]), args[1], args[3])?;
                let Some(log @ 0..=3) = self.constant_of(args[2]) else { return self.unsupported() };
                places.log = log as u8;
                match (values, into) {
                    (Some(values), _) => self.scatter(VPSCATTERDD.of(bytes).accessing(4), values, places),
                    (None, Some(into)) => self.gather(VPGATHERDD.of(bytes).accessing(4), into, places),
                    _ => return self.unsupported(),
                }
            }
            Intrinsic::GatherQuads | Intrinsic::ScatterQuads => {
                let places = places(self, None, args[0], args[1])?;
                match (values, into) {
                    (Some(values), _) => self.scatter(VPSCATTERQQ.of(bytes).accessing(8), values, places),
                    (None, Some(into)) => self.gather(VPGATHERQQ.of(bytes).accessing(8), into, places),
                    _ => return self.unsupported(),
                }
            }
            Intrinsic::GatherWords => {
                let Some(into) = into else { return self.unsupported() };
                let mut halves = [into; 2];
                for (i, half) in halves.iter_mut().enumerate() {
                    let places = places(self, None, args[i], args[2 + i])?;
                    *half = self.vector();
                    self.gather(VPGATHERQD.of(bytes).accessing(4), *half, places);
                }
                let [low, high] = halves;
                let code = if bytes == 64 { VINSERTI64X4.of(64) } else { VINSERTI32X4.of(32) };
                let form = Form::new(code).reg(Use::Write(into)).vvvv(Use::Read(low));
                self.push(form.rm(Source::Register(high)).byte(1));
            }
            Intrinsic::ScatterWords => {
                let Some(values) = values else { return self.unsupported() };
                for (i, high) in [false, true].into_iter().enumerate() {
                    let half = self.half(values, high);
                    let places = places(self, None, args[i], args[2 + i])?;
                    self.scatter_register(VPSCATTERQD.of(bytes).accessing(4), half, places);
                }
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }

    /// Loads the elements that a mask selects; the others are zero.
    fn gather(&mut self, code: Code, into: VReg, places: ElementAddresses) {
        let zero = self.bytes_in_register(&[0; 16]);
        let mut operands = Operands::new();
        operands.add(Operand::reg_use(zero));
        let reg = operands.add(Operand::reg_reuse_def(into, 0));
        self.push_each(code, operands, reg, places);
    }

    fn scatter(&mut self, code: Code, values: Value, places: ElementAddresses) {
        let from = self.register(values);
        self.scatter_register(code, from, places);
    }

    /// Stores the elements that a mask selects, in their order.
    fn scatter_register(&mut self, code: Code, from: VReg, places: ElementAddresses) {
        let mut operands = Operands::new();
        let reg = operands.add(Operand::reg_use(from));
        self.push_each(code, operands, reg, places);
    }

    /// Adds an instruction that accesses each element and clears the mask meanwhile. What it loads
    /// to is not the register of the index.
    fn push_each(&mut self, code: Code, mut operands: Operands, reg: Field, places: ElementAddresses) {
        let number = |field: Field| match field {
            Field::Operand(number) => number,
            _ => 0,
        };
        let cleared = self.mask();
        let mask = number(operands.add(Operand::reg_use(places.mask)));
        let mask = operands.add(Operand::reg_reuse_def(cleared, mask.into()));
        let index = number(operands.add(Operand::reg_use_at_end(places.index)));
        let base = places.base.map(|base| number(operands.add(Operand::reg_use(base))));
        let memory = Memory {
            base: base.map_or(Base::None, Base::Operand),
            index: Some((index, places.log)),
            displacement: places.displacement,
            each: true,
        };
        let encoded = Encoded {
            code,
            reg,
            vvvv: Field::None,
            rm: Field::None,
            memory: Some(memory),
            mask,
            zero: false,
            broadcast: false,
            immediate: Immediate::None,
            lock: false,
        };
        self.sequence.push(Op::Encoded(encoded), operands.list());
    }
}
