//! `cargo xtask bench idle`: what a keep-alive connection costs in memory while it waits for its next request.

use millstream_tests::client::Client;
use millstream_tests::process::{allow_open_files, resident_bytes};

use crate::cases;
use crate::peers::{self, Started};
use crate::product::{self, Product};
use crate::{Options, Programs};

const CONNECTIONS: usize = 5_000;
const FILE: &str = "bench/conf/idle.conf";

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<(), String> {
    if !allow_open_files(CONNECTIONS as u64 * 2 + 1_000) {
        return Err(format!("this needs {CONNECTIONS} connections on both sides: raise `ulimit -n`"));
    }
    let case = cases::named("proxied").ok_or("the table has this case")?;
    let origin = peers::origin(programs)?;
    for &product in
        case.products.iter().filter(|product| matches!(product, Product::Millstream | Product::Nginx))
    {
        if product == Product::Millstream && !options.millstream || product.is_peer() && options.skip_peers {
            continue;
        }
        let binary = match product {
            Product::Millstream => programs.millstream.clone().ok_or("Millstream was not built")?,
            _ => product::find("nginx").ok_or("nginx is not installed: apt-get install nginx")?,
        };
        let server = peers::on_nginx_file(product, &binary, FILE, origin.port)?;
        println!("{}", measure(&server)?);
    }
    Ok(())
}

fn measure(server: &Started) -> Result<String, String> {
    // A first hundred, closed again, so that pools and allocators have grown to their working size.
    drop(open(server, 100)?);
    let before = resident_bytes(server.id());
    let clients = open(server, CONNECTIONS)?;
    let after = resident_bytes(server.id());
    drop(clients);
    let each = after.saturating_sub(before) as f64 / CONNECTIONS as f64 / 1024.0;
    let name = server.product.name();
    Ok(format!(
        "{name}: {CONNECTIONS} idle connections after one request each: {each:.2} KiB each ({} KiB before)",
        before / 1024
    ))
}

fn open(server: &Started, count: usize) -> Result<Vec<Client>, String> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let mut client =
            Client::connect(server.port).map_err(|error| format!("connection {}: {error}", clients.len()))?;
        let answer =
            client.get("/api?size=900").map_err(|error| format!("connection {}: {error}", clients.len()))?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        clients.push(client);
    }
    Ok(clients)
}
