//! Parses the first processor of `/proc/cpuinfo`. The others are the same model on every machine worth measuring.

/// The first stanza. Architectures other than x86 leave most of it out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    /// `model name`, or its name on other architectures.
    pub(crate) model: Option<String>,
    /// Microcode revision.
    pub(crate) microcode: Option<String>,
    /// The present clock frequency, MHz.
    pub(crate) mhz: Option<f64>,
    /// Logical processors a package.
    pub(crate) siblings: Option<u64>,
    /// Cores a package.
    pub(crate) cores: Option<u64>,
    /// Whether the processor has the flag of a hypervisor.
    pub(crate) hypervisor: Option<bool>,
    /// Known hardware bugs.
    pub(crate) bugs: Option<String>,
}

/// Reads up to the first empty line.
pub(crate) fn parse(text: &str) -> Cpu {
    let mut cpu = Cpu::default();
    for line in text.lines().take_while(|line| !line.trim().is_empty()) {
        if let Some((name, value)) = line.split_once(':') {
            set(&mut cpu, name.trim(), value.trim());
        }
    }
    cpu
}

fn set(cpu: &mut Cpu, name: &str, value: &str) {
    match name {
        "model name" | "cpu model" | "Model" | "cpu" => cpu.model = Some(value.to_owned()),
        "microcode" => cpu.microcode = Some(value.to_owned()),
        "cpu MHz" => cpu.mhz = super::parse_finite(value),
        "siblings" => cpu.siblings = value.parse().ok(),
        "cpu cores" => cpu.cores = value.parse().ok(),
        "flags" => {
            cpu.hypervisor = Some(
                value
                    .split_ascii_whitespace()
                    .any(|flag| flag == "hypervisor"),
            )
        }
        "bugs" => cpu.bugs = Some(value.to_owned()),
        _ => {}
    }
}
