# Varnish stores the page gzipped and unzips it for who does not take gzip: its own way of compressing once.
vcl 4.1;
backend default { .host = "@ORIGIN_HOST@"; .port = "@ORIGIN_PORT@"; }
sub vcl_backend_response { set beresp.do_gzip = true; }
