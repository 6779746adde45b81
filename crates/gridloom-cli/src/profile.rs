//! `gridloom profile`: when each node of a launch ran.

use std::sync::Arc;

use clap::ValueEnum;
use gridloom::{Device, ProfileOptions};

use crate::args::{DeviceChoice, Profile, Program};
use crate::timeout::Launches;
use crate::{Failure, demo, files, output, saved};

/// Runs the subcommand.
pub(crate) fn run(options: &Profile) -> Result<(), Failure> {
    let name = options.target.display().to_string();
    let program = Program::from_str(&name, false).ok().filter(|_| !options.target.exists());
    let mut wanted = options.device.clone();
    // The kernels of the demonstrations need no checks, and times should be those of machine code.
    let is_free = !wanted.checked && wanted.engine.is_none() && wanted.device != Some(DeviceChoice::Cuda);
    if program.is_some() && is_free && (wanted.device.is_some() || Device::cuda(0).is_err()) {
        wanted.unchecked = true;
    }
    let html = files::open(options.html.as_deref())?;
    let trace = files::open(options.trace.as_deref())?;
    files::refuse_two_writers(html.iter().chain(&trace))?;
    let device = saved::device(&wanted, &options.inputs)?;
    let bytes = match program {
        // A demonstration is profiled as the file that `demo --save` writes.
        Some(program) => demo::saved(program, &device)?,
        None if !options.target.exists() && options.target.as_os_str() != "-" => {
            let known: Vec<String> = Program::value_variants()
                .iter()
                .filter_map(|program| Some(program.to_possible_value()?.get_name().to_owned()))
                .collect();
            return Err(format!(
                "{name}: there is no such file, and no such demonstration; there are {}",
                known.join(", ")
            )
            .into());
        }
        None => saved::read(&options.target)?,
    };
    let loaded = saved::load(&name, &bytes, &device, &options.inputs)?;
    let executable = Arc::new(loaded.graph().instantiate()?);
    let within = Launches::new(executable, device.stream()?, options.timeout);
    within.launch(u64::from(options.warm_up), |_| ())?;
    if options.warm_up > 0 {
        saved::reset(&loaded, &bytes, &options.inputs)?;
    }
    let mut profile = within.profile(ProfileOptions::new().max_runs(options.runs as usize))?;
    remark(&mut profile, &device);
    if let Some(destination) = html {
        let mut picture = gridloom_view::saved::read(&bytes).map_err(|error| format!("{name}: {error}"))?;
        picture.title = options.target.file_stem().map_or(name, |stem| stem.to_string_lossy().into_owned());
        let times = serde_json::from_str(&profile.to_json())?;
        destination.write_and_tell(picture.to_html(Some(&times)).as_bytes())?;
    }
    if let Some(destination) = trace {
        destination.write_and_tell(profile.to_chrome_trace().as_bytes())?;
    }
    if options.json {
        output::write(&(profile.to_json() + "\n"))
    } else if options.all {
        output::write(&format!("{profile:#}"))
    } else {
        output::write(&format!("{profile}"))
    }
}

/// Says so if the times are not those that a program would see.
pub(crate) fn remark(profile: &mut gridloom::Profile, device: &Device) {
    if device.is_checked() {
        let remark = "the interpreter ran the kernels and checked every access; for a file that you trust, --unchecked measures machine code";
        profile.remarks.push(remark.to_owned());
    }
}
