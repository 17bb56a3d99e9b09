//! Everything that touches the kernel: time, timers, sockets, TLS, names, privileges, threads for blocking
//! work.
//!
//! Floor 3. The crates above decide what to do with bytes; this one only moves them. Of HTTP it knows the streams
//! of HTTP/2, which both sides of the proxy have; it keeps no configuration, and no function here blocks a worker's loop (the ones that block say so in their name or
//! run at start). Modules stand lowest floor first; start reading at [`listener`] for the way in and at
//! [`stream`] for what everything else holds in its hands.

mod kernel;
pub mod allocator;
pub mod child;
pub mod channel;
pub mod guarded_path;
pub mod privileges;
pub mod clock;
pub mod terminal;
pub mod timer;
pub mod file_watch;
pub mod buffers;
pub mod blocking;
pub mod cores;
pub mod limits;
pub mod process;
pub mod daemon;
pub mod systemd;
pub mod address;
pub mod memory_file;
pub mod read_file;
pub mod records;
pub mod temporary;
pub mod stream;
pub mod outlet;
pub mod pipe;
pub mod streams;
pub mod proxy_protocol;
pub mod resolve;
pub mod resolver;
pub mod connect;
pub mod tcp_table;
pub mod listener;
mod element;
pub mod certificate;
pub mod tls;
pub mod grpc;

pub use address::Address;
pub use stream::Stream;
