# One second of freshness, stale while it is refreshed: what the nginx file beside it says.
vcl 4.1;
backend default { .host = "@ORIGIN_HOST@"; .port = "@ORIGIN_PORT@"; }
sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 600s; }
