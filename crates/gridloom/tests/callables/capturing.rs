//! Calls on a capturing stream are recorded with their arguments.

use gridloom::prelude::*;

use super::for_each_way;
use crate::support::graph_kernels::read;

#[test]
fn a_call_on_a_capturing_stream_is_recorded_and_not_run() {
    for_each_way(|kernels, options| {
        let increase = kernels.increase.clone();
        let count = Callable::with_options(
            &kernels.device,
            options.clone(),
            move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.do_while(&left, |body| {
                    body.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                    body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))
                })
            },
        );
        let (x, y) = (kernels.value(0)?, kernels.value(0)?);
        let (three, four) = (kernels.value(3)?, kernels.value(4)?);
        let graph = kernels.stream.capture_scope(|_| {
            count.call(&kernels.stream, (&x, &three))?;
            count.call(&kernels.stream, (&y, &four))
        })?;
        assert_eq!((read(&x)?, read(&y)?, graph.len()), (0, 0, 2));

        // A later call with other arguments leaves what was recorded as it is.
        let (z, five) = (kernels.value(0)?, kernels.value(5)?);
        count.call(&kernels.stream, (&z, &five))?;
        assert_eq!((read(&x)?, read(&y)?, read(&z)?), (0, 0, 5));
        count.reset()?;

        let executable = graph.instantiate()?;
        executable.launch(&kernels.stream)?;
        assert_eq!((read(&x)?, read(&y)?), (3, 4));
        three.write(&[6])?;
        four.write(&[7])?;
        executable.launch(&kernels.stream)?;
        assert_eq!((read(&x)?, read(&y)?, read(&z)?), (9, 11, 5));
        Ok(())
    });
}
