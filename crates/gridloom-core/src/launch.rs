//! Launch shapes and attributes, and the limits of devices and kernels.

use std::fmt;

use crate::error::{Result, bail};

/// The extents of a grid, block or cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// The extent along x, the fastest-changing index.
    pub x: u32,
    /// The extent along y.
    pub y: u32,
    /// The extent along z.
    pub z: u32,
}

impl Dim3 {
    /// `1 × 1 × 1`.
    pub const ONE: Dim3 = Dim3 { x: 1, y: 1, z: 1 };

    /// Creates the extents `x × y × z`.
    #[inline]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Dim3 { x, y, z }
    }

    /// Returns the number of elements. It cannot overflow.
    pub const fn volume(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }

    /// Returns the extents in order.
    pub const fn to_array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

impl From<u32> for Dim3 {
    #[inline]
    fn from(x: u32) -> Self {
        Dim3::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Dim3::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim3::new(x, y, z)
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Dim3::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// The shape of a kernel launch: the number of blocks, the threads in each block, and launch
/// attributes.
///
/// ```
/// use gridloom_core::launch::LaunchConfig;
///
/// let config = LaunchConfig::linear(1000);
/// assert_eq!((config.grid.x, config.block.x), (4, 256));
/// let tiled = LaunchConfig::new((8, 8), (16, 16)).shared(2048);
/// assert_eq!(tiled.block.volume(), 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// The number of blocks.
    pub grid: Dim3,
    /// The number of threads in each block.
    pub block: Dim3,
    /// The dynamic shared memory of each block, in bytes.
    pub shared: u32,
    /// The number of blocks in each cluster, if the kernel uses clusters.
    pub cluster: Option<Dim3>,
    /// Whether all blocks must be resident at once, so that they may wait for each other.
    pub cooperative: bool,
    /// The priority of the node in its graph. Lower numbers come first.
    pub priority: Option<i32>,
    /// Whether the kernel may start before the kernels it follows have ended. It then waits for
    /// their data itself.
    pub programmatic: bool,
}

impl LaunchConfig {
    /// The number of threads in a block of [`LaunchConfig::linear`].
    pub const LINEAR_BLOCK: u32 = 256;

    /// Creates a launch of `grid` blocks of `block` threads.
    #[inline]
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        LaunchConfig {
            grid: grid.into(),
            block: block.into(),
            shared: 0,
            cluster: None,
            cooperative: false,
            priority: None,
            programmatic: false,
        }
    }

    /// Creates a launch of one block with one thread.
    #[inline]
    pub fn one() -> Self {
        LaunchConfig::new(1, 1)
    }

    /// Creates a launch of at least `threads` threads along x, in blocks of
    /// [`LaunchConfig::LINEAR_BLOCK`]. The kernel must skip threads past the end. If there are no
    /// threads, or more than a grid can hold, adding the launch fails.
    #[inline]
    pub fn linear(threads: usize) -> Self {
        let blocks = threads.div_ceil(Self::LINEAR_BLOCK as usize);
        LaunchConfig::new(u32::try_from(blocks).unwrap_or(u32::MAX), Self::LINEAR_BLOCK)
    }

    /// Sets the dynamic shared memory of each block, in bytes.
    #[must_use]
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Groups the blocks into clusters.
    #[must_use]
    pub fn cluster(mut self, cluster: impl Into<Dim3>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// Requires that all blocks are resident at once.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Sets the priority among the nodes of the graph.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Lets the kernel start before the kernels it follows have ended. The edges from those kernels
    /// become programmatic, and the kernel itself waits for what they write
    /// (`griddepcontrol.wait`). A device that cannot overlap the kernels runs it after them.
    #[must_use]
    pub fn programmatic(mut self) -> Self {
        self.programmatic = true;
        self
    }
}

/// The limits of a device on launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest grid.
    pub max_grid: Dim3,
    /// The largest block along each axis.
    pub max_block: Dim3,
    /// The largest number of threads in a block.
    pub max_threads_per_block: u32,
    /// The largest shared memory of a block in bytes, static and dynamic, that a kernel can opt in
    /// to.
    pub max_shared_per_block: u32,
    /// The number of threads in a warp.
    pub warp_size: u32,
    /// The largest size of a kernel's parameters, in bytes.
    pub max_parameter_bytes: u32,
}

/// The limits of a kernel on its launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLimits {
    /// The largest number of threads in a block, from the kernel's resources or its `.maxntid`.
    pub max_threads: Option<u32>,
    /// The exact block that `.reqntid` requires.
    pub required_block: Option<Dim3>,
    /// The shared memory that the kernel declares itself, in bytes.
    pub static_shared: u32,
}

impl LaunchConfig {
    /// Checks the launch against the limits of device and kernel.
    #[inline]
    pub fn check(&self, device: &Limits, kernel: &KernelLimits) -> Result<()> {
        if self.is_within(device, kernel) { Ok(()) } else { self.refuse(device, kernel) }
    }

    /// Returns whether a launch without clusters is within all limits.
    #[inline]
    fn is_within(&self, device: &Limits, kernel: &KernelLimits) -> bool {
        let inside = |extents: Dim3, max: Dim3| {
            let axis = |extent: u32, max: u32| extent.wrapping_sub(1) < max;
            axis(extents.x, max.x) & axis(extents.y, max.y) & axis(extents.z, max.z)
        };
        let max_threads = device.max_threads_per_block.min(kernel.max_threads.unwrap_or(u32::MAX));
        let shared = u64::from(self.shared) + u64::from(kernel.static_shared);
        inside(self.grid, device.max_grid)
            && inside(self.block, device.max_block)
            && self.block.volume() <= u128::from(max_threads)
            && kernel.required_block.is_none_or(|required| required == self.block)
            && shared <= u64::from(device.max_shared_per_block)
            && self.cluster.is_none()
    }

    /// Returns an error that says what is wrong, if anything is.
    #[cold]
    fn refuse(&self, device: &Limits, kernel: &KernelLimits) -> Result<()> {
        check_extents("grid", self.grid, device.max_grid)?;
        check_extents("block", self.block, device.max_block)?;
        let threads = self.block.volume();
        if threads > u128::from(device.max_threads_per_block) {
            bail!(
                InvalidArgument,
                "a block of {} has {threads} threads; this device runs at most {}",
                self.block,
                device.max_threads_per_block
            );
        }
        if let Some(max) = kernel.max_threads
            && threads > u128::from(max)
        {
            bail!(
                InvalidArgument,
                "a block of {} has {threads} threads; this kernel runs with at most {max}",
                self.block
            );
        }
        if let Some(required) = kernel.required_block
            && required != self.block
        {
            bail!(InvalidArgument, "the block is {}; this kernel requires {required} (.reqntid)", self.block);
        }
        let shared = u64::from(self.shared) + u64::from(kernel.static_shared);
        if shared > u64::from(device.max_shared_per_block) {
            bail!(
                InvalidArgument,
                "{shared} bytes of shared memory a block ({} dynamic, {} declared by the kernel); this device has {}",
                self.shared,
                kernel.static_shared,
                device.max_shared_per_block
            );
        }
        if let Some(cluster) = self.cluster {
            let (grid, cluster) = (self.grid.to_array(), cluster.to_array());
            if cluster.contains(&0) || grid.iter().zip(cluster).any(|(&grid, cluster)| grid % cluster != 0) {
                bail!(
                    InvalidArgument,
                    "clusters of {} do not divide a grid of {}; every extent of the grid must be a multiple",
                    Dim3::from(cluster),
                    self.grid
                );
            }
        }
        Ok(())
    }
}

fn check_extents(what: &str, extents: Dim3, max: Dim3) -> Result<()> {
    for (axis, (extent, max)) in
        ["x", "y", "z"].iter().zip(extents.to_array().into_iter().zip(max.to_array()))
    {
        if extent == 0 {
            bail!(InvalidArgument, "the {what} is {extents}; every extent must be at least 1");
        }
        if extent > max {
            bail!(InvalidArgument, "the {what} is {extents}; this device allows at most {max} along {axis}");
        }
    }
    Ok(())
}
