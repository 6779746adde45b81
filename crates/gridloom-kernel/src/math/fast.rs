//! Functions that a GPU approximates with an instruction of its own.

/// Defines the trait for the host: the functions of the standard library.
macro_rules! fast {
    ($($(#[$meta:meta])* $name:ident($self:ident $(, $arg:ident)?) { $host:expr })*) => {
        /// Approximate functions of single precision, for where speed counts more than the last
        /// digits.
        ///
        /// In kernels they are instructions of the device. On the host they are the exact
        /// functions. The bounds are those that PTX states for the instructions.
        ///
        /// ```
        /// use gridloom_kernel::math::FastMath;
        ///
        /// assert!((1.0f32.fast_exp() - 2.718_281_8).abs() < 1e-6);
        /// ```
        pub trait FastMath: Sized {
            $($(#[$meta])* #[must_use] fn $name(self $(, $arg: Self)?) -> Self;)*
        }

        impl FastMath for f32 {
            $(fn $name($self $(, $arg: f32)?) -> f32 { $host })*
        }
    };
}
fast! {
    /// Returns the sine. The error is at most 2^-20.5 between -2π and 2π, and grows beyond.
    fast_sin(self) { self.sin() }
    /// Returns the cosine. The error is at most 2^-20.5 between -2π and 2π, and grows beyond.
    fast_cos(self) { self.cos() }
    /// Returns the tangent, as the quotient of the sine and the cosine.
    fast_tan(self) { self.tan() }
    /// Returns e to this power. The relative error is about 2^-22 for small numbers, and grows with
    /// the number.
    fast_exp(self) { self.exp() }
    /// Returns 2 to this power. The relative error is at most 2^-22.
    fast_exp2(self) { self.exp2() }
    /// Returns the natural logarithm. The error is at most 2^-22 between 1/2 and 2, else relative.
    fast_ln(self) { self.ln() }
    /// Returns the logarithm to base 2. The error is at most 2^-22 between 1/2 and 2, else
    /// relative.
    fast_log2(self) { self.log2() }
    /// Returns the logarithm to base 10. The error is at most 2^-22 between 1/2 and 2, else
    /// relative.
    fast_log10(self) { self.log10() }
    /// Returns a power of a positive number, by its logarithm to base 2. The relative error is
    /// about 2^-22 times the exponent of the result.
    fast_powf(self, exponent) { self.powf(exponent) }
    /// Returns the hyperbolic tangent. The error is at most 2^-20.
    fast_tanh(self) { self.tanh() }
    /// Returns the square root. The relative error is at most 2^-23.
    fast_sqrt(self) { self.sqrt() }
    /// Returns one divided by the square root. The relative error is at most 2^-22.9.
    fast_rsqrt(self) { 1.0 / self.sqrt() }
    /// Returns one divided by the number. The relative error is at most 2^-23.
    fast_recip(self) { 1.0 / self }
    /// Returns the quotient. The error is at most 2 ulp for divisors from 2^-126 to 2^126.
    fast_div(self, divisor) { self / divisor }
}
