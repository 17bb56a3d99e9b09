{{- define "millstream.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "millstream.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "millstream.selector" -}}
app.kubernetes.io/name: {{ include "millstream.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "millstream.labels" -}}
{{ include "millstream.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "millstream.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "millstream.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "millstream.replicas" -}}
{{- if kindIs "invalid" .Values.replicaCount -}}
{{- ternary 2 1 (ne .Values.cluster.url "") -}}
{{- else -}}
{{- int .Values.replicaCount -}}
{{- end -}}
{{- end -}}

{{/* Not empty if there can be more than one replica. */}}
{{- define "millstream.severalCaches" -}}
{{- if or .Values.autoscaling.enabled (gt (int (include "millstream.replicas" .)) 1) -}}true{{- end -}}
{{- end -}}

{{/* Host and port of the engine. */}}
{{- define "millstream.engine" -}}
{{- $engine := (urlParse .Values.cluster.url).host -}}
{{- if regexMatch ":[0-9]+$" $engine -}}{{ $engine }}{{- else -}}{{ $engine }}:6379{{- end -}}
{{- end -}}

{{/* What values.schema.json cannot say: which values do not go together. */}}
{{- define "millstream.check" -}}
{{- if and .Values.cache.persistence.enabled (include "millstream.severalCaches" .) -}}
{{- fail "cache.persistence: a cache on a volume belongs to one process: set replicaCount to 1 and leave autoscaling off" -}}
{{- end -}}
{{- if and .Values.cluster.url (not .Values.cluster.secretName) -}}
{{- fail "cluster.secretName: name the Secret with the cluster's shared secret" -}}
{{- end -}}
{{- if eq (int .Values.port) (int .Values.dashboard.port) -}}
{{- fail "dashboard.port: it is the port of the sites" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.dashboard.token.secretName) (eq (join " " .Values.dashboard.allow) "127.0.0.1") -}}
{{- fail "serviceMonitor: Prometheus may not read the metrics: name its network in dashboard.allow, or a Secret in dashboard.token" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas)) -}}
{{- fail "autoscaling.maxReplicas: it is less than minReplicas" -}}
{{- end -}}
{{- range $name, $text := .Values.templates -}}
{{- if hasKey $.Values.sites $name -}}
{{- fail (printf "templates: %s is the name of a file of `sites` as well" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
