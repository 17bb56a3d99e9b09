//! One question to one name server: over UDP, and over TCP where the answer is cut there (RFC 1035 §4.2, RFC 7766 §5).
//!
//! Each question has a socket and an identifier of its own, so a stranger who answers it has to guess a port and sixteen bits more
//! (RFC 5452 §9). What is no answer to it is passed over. Nothing is asked twice here. Before: `question`.

use hickory_proto::op::ResponseCode::{NXDomain, NoError};
use hickory_proto::op::{Message, MessageType, Query};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// Bytes of a UDP response that are read; nginx's. Without EDNS a name server sends 512 (RFC 1035 §4.2.1).
const MOST_OF_DATAGRAM: usize = 4096;

/// Without a timeout.
pub(super) async fn exchange(server: SocketAddr, question: &Query) -> io::Result<Message> {
    let mut asked = Message::query();
    asked.metadata.recursion_desired = true;
    asked.add_query(question.clone());
    let bytes = asked.to_vec().map_err(io::Error::other)?;
    let answer = over_udp(server, &asked, &bytes).await?;
    // Of a refusal nothing that counts is cut.
    let is_cut = answer.metadata.truncation && matches!(answer.metadata.response_code, NoError | NXDomain);
    if is_cut { over_tcp(server, &asked, &bytes).await } else { Ok(answer) }
}

async fn over_udp(server: SocketAddr, asked: &Message, bytes: &[u8]) -> io::Result<Message> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    // From here on the system passes over what others send.
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut datagram = vec![0; MOST_OF_DATAGRAM];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(answer) = answer_in(&datagram[..length], asked) {
            return Ok(answer);
        }
    }
}

async fn over_tcp(server: SocketAddr, asked: &Message, bytes: &[u8]) -> io::Result<Message> {
    let length = u16::try_from(bytes.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let mut connection = TcpStream::connect(server).await?;
    connection.write_all(&[&length.to_be_bytes(), bytes].concat()).await?;
    let mut answer = vec![0; usize::from(connection.read_u16().await?)];
    connection.read_exact(&mut answer).await?;
    answer_in(&answer, asked)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the response does not match the query"))
}

/// `None` if it is not a response to this question. A server that rejects the question as malformed need not
/// repeat it.
fn answer_in(bytes: &[u8], asked: &Message) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let (of, to) = (&answer.metadata, &asked.metadata);
    let is_of_it = of.id == to.id && of.message_type == MessageType::Response && of.op_code == to.op_code;
    let repeats = answer.queries == asked.queries || answer.queries.is_empty() && of.response_code != NoError;
    (is_of_it && repeats).then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::ResponseCode;
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, Record, RecordType};
    use tokio::net::TcpListener;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    fn question() -> Query {
        Query::query(name("api.example.net."), RecordType::A)
    }

    fn answer(asked: &[u8], last: u8) -> Message {
        let mut answer = Message::from_vec(asked).expect("a question").into_response();
        let address = RData::A(A(Ipv4Addr::new(10, 0, 0, last)));
        answer.add_answer(Record::from_rdata(name("api.example.net."), 60, address));
        answer
    }

    fn bytes(message: &Message) -> Vec<u8> {
        message.to_vec().expect("a message")
    }

    async fn server() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = socket.local_addr().expect("bound");
        (socket, address)
    }

    async fn asked(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut asked = [0; 512];
        let (length, from) = socket.recv_from(&mut asked).await.expect("a question");
        (asked[..length].to_vec(), from)
    }

    #[tokio::test]
    async fn what_is_no_answer_to_the_question_is_passed_over() {
        let (socket, address) = server().await;
        let (stranger, _) = server().await;
        let serve = async {
            let (asked, from) = asked(&socket).await;
            let (right, mut of_another, mut to_another) =
                (answer(&asked, 1), answer(&asked, 2), answer(&asked, 3));
            of_another.metadata.id ^= 1;
            to_another.queries = vec![Query::query(name("other.example.net."), RecordType::A)];
            let mut no_question = answer(&asked, 4);
            no_question.queries.clear();
            stranger.send_to(&bytes(&answer(&asked, 5)), from).await.expect("sent");
            let question = asked.clone();
            for datagram in [
                b"".to_vec(),
                vec![0; 3],
                question,
                bytes(&of_another),
                bytes(&to_another),
                bytes(&no_question),
                bytes(&right),
            ] {
                socket.send_to(&datagram, from).await.expect("sent");
            }
            right
        };
        let question = question();
        let (found, right) = tokio::join!(exchange(address, &question), serve);
        assert_eq!(found.expect("an answer").answers, right.answers);
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_is_asked_for_over_tcp_and_a_refusal_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let socket = UdpSocket::bind(address).await.expect("the same port, of UDP");
        let cut = |asked: &[u8], code| {
            let mut cut = answer(asked, 1);
            cut.metadata.truncation = true;
            cut.metadata.response_code = code;
            cut
        };
        let serve = async {
            let (first, from) = asked(&socket).await;
            socket.send_to(&bytes(&cut(&first, ResponseCode::NoError)), from).await.expect("sent");
            let (mut connection, _) = listener.accept().await.expect("a connection");
            let mut again = vec![0; usize::from(connection.read_u16().await.expect("a length"))];
            connection.read_exact(&mut again).await.expect("the question");
            let whole = bytes(&answer(&again, 2));
            connection.write_u16(u16::try_from(whole.len()).expect("short")).await.expect("sent");
            connection.write_all(&whole).await.expect("sent");
            assert_eq!(first, again);
            let (second, from) = asked(&socket).await;
            socket.send_to(&bytes(&cut(&second, ResponseCode::FormErr)), from).await.expect("sent");
        };
        let ask = async {
            let question = question();
            let whole = exchange(address, &question).await.expect("an answer");
            (whole, exchange(address, &question).await.expect("a refusal"))
        };
        let ((whole, refusal), ()) = tokio::join!(ask, serve);
        assert!(matches!(whole.answers[0].data, RData::A(A(address)) if address.octets()[3] == 2));
        assert_eq!(refusal.metadata.response_code, ResponseCode::FormErr);
    }
}
