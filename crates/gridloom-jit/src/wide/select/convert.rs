//! Selection of conversions between integers and floats.

use super::*;

impl Selector<'_> {
    /// Adds a conversion of an integer of one thread to a float.
    pub(super) fn float_of_integer(
        &mut self,
        signed: bool,
        into: VReg,
        arg: Value,
        ty: Type,
    ) -> Result<(), Unsupported> {
        let quad = self.type_of(arg).bits() == 64;
        let from = self.extended(arg, signed);
        let moved = self.vector();
        // In a vector, so that the result does not depend on what its register held.
        let code = if quad { VMOVQ } else { VMOVD };
        self.unary(code.of(16), moved, Source::Register(from));
        let code = match (quad, ty.bits() == 64, signed) {
            (false, false, true) => VCVTDQ2PS,
            (false, false, false) => VCVTUDQ2PS,
            (false, true, true) => VCVTDQ2PD,
            (false, true, false) => VCVTUDQ2PD,
            (true, false, true) => VCVTQQ2PS,
            (true, false, false) => VCVTUQQ2PS,
            (true, true, true) => VCVTQQ2PD,
            (true, true, false) => VCVTUQQ2PD,
        };
        self.unary(code.of(16), into, Source::Register(moved));
        Ok(())
    }

    /// Adds a conversion of a float of one thread to an integer: the nearest there is, and zero for
    /// a NaN.
    pub(super) fn integer_of_float(
        &mut self,
        signed: bool,
        into: VReg,
        arg: Value,
        ty: Type,
    ) -> Result<(), Unsupported> {
        if ty.bits() < 32 {
            return self.unsupported();
        }
        let from = self.register(arg);
        let converted = self.vector();
        self.saturate(signed, converted, from, [self.type_of(arg).bits(), ty.bits()], 16);
        let code = if ty.bits() == 64 { VMOVQ_OUT } else { VMOVD_OUT };
        self.push(Form::new(code.of(16)).reg(Use::Read(converted)).rm_use(Use::Write(into)));
        Ok(())
    }

    /// Adds a conversion of floats of some bits to integers of some bits. `bytes` is the length of
    /// the vector of whichever are wider.
    fn saturate(&mut self, signed: bool, into: VReg, from: VReg, [bits, to]: [u32; 2], bytes: u32) {
        let (double, quad) = (bits == 64, to == 64);
        let code = match (double, quad, signed) {
            (false, false, true) => VCVTTPS2DQ,
            (false, false, false) => VCVTTPS2UDQ,
            (true, false, true) => VCVTTPD2DQ,
            (true, false, false) => VCVTTPD2UDQ,
            (false, true, true) => VCVTTPS2QQ,
            (false, true, false) => VCVTTPS2UQQ,
            (true, true, true) => VCVTTPD2QQ,
            (true, true, false) => VCVTTPD2UQQ,
        };
        let code = code.of(bytes);
        let float_bytes = if quad && !double { bytes / 2 } else { bytes }.max(16);
        if !signed {
            // Negative numbers and NaNs become zero, and what is too large all ones.
            let zero = self.bytes_in_register(&[0; 16]);
            let positive = self.vector();
            self.binary(float(0x5f, double, false).of(float_bytes), positive, from, Source::Register(zero));
            return self.unary(code, into, Source::Register(positive));
        }
        let (compare, limit) = match double {
            true => (VCMPPD, (2f64.powi(to as i32 - 1)).to_le_bytes().to_vec()),
            false => (VCMPPS, (2f32.powi(to as i32 - 1)).to_le_bytes().to_vec()),
        };
        let compare = compare.of(float_bytes);
        let [is_number, is_large] = [0; 2].map(|_| self.mask());
        let form = Form::new(compare).vvvv(Use::Read(from));
        self.push(form.reg(Use::Write(is_number)).rm(Source::Register(from)).byte(7));
        let limit = self.constant_address(&limit);
        self.push(form.reg(Use::Write(is_large)).rm(Source::Element(limit)).byte(0x0d));
        let converted = self.vector();
        let form = Form::new(code).reg(Use::Write(converted)).rm(Source::Register(from));
        self.push(form.under(is_number, true));
        let most = match quad {
            true => i64::MAX.to_le_bytes().to_vec(),
            false => i32::MAX.to_le_bytes().to_vec(),
        };
        let most = self.constant_address(&most);
        let code = if quad { VPBLENDMQ } else { VPBLENDMD };
        let form = Form::new(code.of(bytes)).reg(Use::Write(into)).vvvv(Use::Read(converted));
        self.push(form.rm(Source::Element(most)).under(is_large, false));
    }

    /// Selects an operation on vectors of floats, or one that makes them.
    pub(super) fn float_vector(
        &mut self,
        opcode: Opcode,
        into: VReg,
        arg: Value,
        ty: Type,
    ) -> Result<(), Unsupported> {
        let (from, bytes) = (self.type_of(arg), ty.bytes());
        match opcode {
            Opcode::Sqrt => self.square_root(into, arg, ty),
            Opcode::Fneg | Opcode::Fabs => self.change_sign(opcode, into, arg, ty),
            Opcode::Ceil | Opcode::Floor | Opcode::Trunc | Opcode::Nearest => {
                self.round(opcode, into, arg, ty)
            }
            Opcode::FcvtFromSint | Opcode::FcvtFromUint if from.lane_bits() == ty.lane_bits() => {
                let code = match (ty.lane_bits() == 64, opcode == Opcode::FcvtFromSint) {
                    (false, true) => VCVTDQ2PS,
                    (false, false) => VCVTUDQ2PS,
                    (true, true) => VCVTQQ2PD,
                    (true, false) => VCVTUQQ2PD,
                };
                let register = self.register(arg);
                self.unary(code.of(bytes), into, Source::Register(register));
            }
            Opcode::FcvtToSintSat | Opcode::FcvtToUintSat if from.lane_bits() == ty.lane_bits() => {
                let register = self.register(arg);
                let bits = [from.lane_bits(), ty.lane_bits()];
                self.saturate(opcode == Opcode::FcvtToSintSat, into, register, bits, bytes);
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }
}
