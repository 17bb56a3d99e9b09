//! Calls to a server of HTTP/2 that answers as a script has it.

use super::*;
use h2::server::SendResponse;
use http::Response;
use tokio::net::UnixStream;
use tokio::task::LocalSet;

const CALL: GrpcCall<'_> =
    GrpcCall { base: "http://here", path: "/x.Y/Z", fields: &[], message: b"question" };

#[derive(Debug, Clone, Copy)]
enum Does {
    /// Trailers alone: the status, and `grpc-status` as it stands.
    Head(u16, &'static str),
    /// A head, a body of so many bytes after a prefix that says so, and perhaps `grpc-status`.
    Whole(usize, Option<&'static str>),
    Resets(Reason),
    Leaves,
    Breaks,
}

fn against<T>(script: Vec<Does>, client: impl AsyncFnOnce(GrpcConnection) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let (near, far) = UnixStream::pair().expect("a pair");
        tokio::task::spawn_local(serve(far, script));
        let connection = GrpcConnection::open(Stream::Unix(near)).await.expect("a connection");
        client(connection).await
    })
}

async fn serve(stream: UnixStream, script: Vec<Does>) {
    let mut server = h2::server::handshake(stream).await.expect("a client");
    for does in script {
        let Some(Ok((_, mut respond))) = server.accept().await else { return };
        match does {
            Does::Leaves => {
                server.abrupt_shutdown(Reason::NO_ERROR);
                break;
            }
            Does::Breaks => return,
            does => answer(&mut respond, does),
        }
    }
    while server.accept().await.is_some() {}
}

fn answer(respond: &mut SendResponse<Bytes>, does: Does) {
    match does {
        Does::Head(status, code) => {
            let head = Response::builder().status(status).header("grpc-status", code);
            let head = head.header("grpc-message", "as it is").body(()).expect("a head");
            respond.send_response(head, true).expect("it is sent");
        }
        Does::Whole(length, code) => {
            let mut out = respond.send_response(Response::new(()), false).expect("it is sent");
            out.send_data(framed(&vec![b'a'; length]), false).expect("it is sent");
            let mut trailers = HeaderMap::new();
            if let Some(code) = code {
                trailers.insert("grpc-status", code.parse().expect("a value"));
            }
            out.send_trailers(trailers).expect("they are sent");
        }
        Does::Resets(reason) => respond.send_reset(reason),
        Does::Leaves | Does::Breaks => {}
    }
}

fn outcome(does: Does) -> Result<(u32, Option<usize>), String> {
    against(vec![does], async |mut connection| {
        let reply = connection.call(&CALL).await.map_err(|error| error.to_string())?;
        Ok((reply.code, reply.message().map(<[u8]>::len)))
    })
}

#[test]
fn a_call_ends_with_its_status_or_with_why_it_has_none() {
    for (does, expected) in [
        (Does::Whole(2, Some("0")), Ok((0, Some(2)))),
        (Does::Whole(0, Some("0")), Ok((0, Some(0)))),
        (Does::Head(200, "12"), Ok((12, None))),
        (Does::Whole(2, None), Err("has no grpc-status")),
        (Does::Whole(2, Some("ok")), Err("has no grpc-status")),
        (Does::Head(200, "-1"), Err("has no grpc-status")),
        (Does::Head(503, "0"), Err("the response has status 503")),
        (Does::Whole(60_000, Some("0")), Ok((0, Some(60_000)))),
        (Does::Whole(70_000, Some("0")), Err("too large")),
        (Does::Resets(Reason::CANCEL), Err("stream")),
        (Does::Leaves, Err("")),
        (Does::Breaks, Err("")),
    ] {
        match (outcome(does), expected) {
            (Ok(found), expected) => assert_eq!(Ok(found), expected, "{does:?}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{does:?}: {why}"),
            (Err(why), Ok(_)) => panic!("{does:?}: {why}"),
        }
    }
}

fn is_stale(does: Does) -> bool {
    against(vec![does], async |mut connection| connection.call(&CALL).await.expect_err("it fails").is_stale())
}

#[test]
fn only_a_connection_that_was_closed_or_that_refused_the_call_is_to_blame() {
    for (does, expected) in [
        (Does::Leaves, true),
        (Does::Breaks, true),
        (Does::Resets(Reason::REFUSED_STREAM), true),
        (Does::Resets(Reason::INTERNAL_ERROR), false),
        (Does::Head(500, "0"), false),
    ] {
        assert_eq!(is_stale(does), expected, "{does:?}");
    }
}

#[test]
fn a_connection_serves_call_after_call_until_its_server_leaves() {
    let script = vec![Does::Head(200, "0"), Does::Whole(1, Some("0")), Does::Leaves];
    against(script, async |mut connection| {
        for _ in 0..2 {
            assert!(connection.is_ready().await);
            assert_eq!(connection.call(&CALL).await.expect("an outcome").code, 0);
        }
        assert!(connection.call(&CALL).await.is_err());
        assert!(!connection.is_ready().await);
    });
}

#[test]
fn a_message_that_is_cut_or_compressed_is_none() {
    let message = |body: &[u8]| {
        let reply = GrpcReply { code: 0, reason: String::new(), body: body.to_vec() };
        reply.message().map(<[u8]>::to_vec)
    };
    assert_eq!(message(&[0, 0, 0, 0, 2, 8, 1]), Some(vec![8, 1]));
    assert_eq!(message(&[0, 0, 0, 0, 0]), Some(Vec::new()));
    for wrong in
        [&b""[..], &[0, 0, 0, 0], &[0, 0, 0, 0, 2, 8], &[1, 0, 0, 0, 1, 8], &[0, 255, 255, 255, 255, 8]]
    {
        assert_eq!(message(wrong), None, "{wrong:?}");
    }
}
