//! The default gateway, as Linux tells it: from there a container's published ports are reached.

use std::net::{IpAddr, Ipv4Addr};

const ROUTES: &str = "/proc/net/route";
/// A route that is up and leads through a gateway (`linux/route.h`).
const UP_BY_GATEWAY: u32 = 0x1 | 0x2;

/// The IPv4 address of the default gateway; none where there is none, or the system has no such file.
pub(crate) fn default_gateway() -> Option<IpAddr> {
    let routes = std::fs::read_to_string(ROUTES).ok()?;
    parse(&routes).map(IpAddr::V4)
}

/// Reads a table of routes: interface, destination, gateway, flags and more; addresses are the hexadecimal of their
/// bytes as a number of the machine.
fn parse(routes: &str) -> Option<Ipv4Addr> {
    routes.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let mut number = || u32::from_str_radix(columns.next()?, 16).ok();
        let (destination, gateway, flags) = (number()?, number()?, number()?);
        let is_default = destination == 0 && flags & UP_BY_GATEWAY == UP_BY_GATEWAY;
        is_default.then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn the_default_route_has_the_gateway() {
        let gateway = u32::from_ne_bytes([172, 17, 0, 1]);
        let routes = format!(
            "{HEAD}eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
             eth0\t00000000\t{gateway:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        );
        assert_eq!(parse(&routes), Some(Ipv4Addr::new(172, 17, 0, 1)));
    }

    #[test]
    fn a_table_without_one_has_none() {
        let down = format!("{HEAD}eth0\t00000000\t010011AC\t0002\t0\n");
        let direct = format!("{HEAD}eth0\t00000000\t00000000\t0001\t0\n");
        for routes in ["", HEAD, "x\ny", &down, &direct] {
            assert_eq!(parse(routes), None, "{routes}");
        }
    }
}
