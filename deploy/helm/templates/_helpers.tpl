{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "lakegate.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakegate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lakegate.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "lakegate.labels" -}}
{{ include "lakegate.selector" . }}
{{ include "lakegate.commonLabels" . }}
{{- end -}}

{{- /* The labels of another part of the release; the argument is (list $ "openfga"). */ -}}
{{- define "lakegate.partSelector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}-{{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end -}}

{{- define "lakegate.partLabels" -}}
{{ include "lakegate.partSelector" . }}
{{ include "lakegate.commonLabels" (index . 0) }}
{{- end -}}

{{- define "lakegate.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "lakegate.secretName" -}}
{{- .Values.secretName | default (printf "%s-generated" (include "lakegate.name" .)) -}}
{{- end -}}

{{- /* The annotations that make a Job a hook; the argument is (list $ "pre-install,pre-upgrade" "0"). */ -}}
{{- define "lakegate.hook" -}}
helm.sh/hook: {{ index . 1 }}
helm.sh/hook-weight: {{ index . 2 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- /* True if a Job needs a part that the first installation creates only after its hooks. */ -}}
{{- define "lakegate.migratesBesideItsParts" -}}
{{- if and .Release.IsInstall (or .Values.postgres.embedded .Values.openfga.enabled) -}}true{{- end -}}
{{- end -}}

{{- define "lakegate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "lakegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}

{{- define "lakegate.openfgaEndpoint" -}}
{{- if .Values.openfga.enabled -}}
http://{{ include "lakegate.name" . }}-openfga:8080
{{- else -}}
{{- required "openfga.endpoint must be set, because openfga.enabled is false" .Values.openfga.endpoint -}}
{{- end -}}
{{- end -}}

{{- define "lakegate.opaUrl" -}}
{{- if .Values.opa.enabled -}}
http://{{ include "lakegate.name" . }}-opa:8181
{{- else -}}
{{- required "opa.url must be set, because opa.enabled is false" .Values.opa.url -}}
{{- end -}}
{{- end -}}

{{- /* The environment of every container of the gateway. It is part of the pod, so that a restart of an old pod finds its own
settings, not those of an upgrade that failed. */ -}}
{{- define "lakegate.environment" -}}
env:
  - {name: LAKEGATE__SETTINGS_DIRECTORY, value: /etc/lakegate/secrets}
  - {name: LAKEGATE__LISTEN_PORT, value: "8181"}
  - {name: LAKEGATE__METRICS__PORT, value: {{ .Values.service.metricsPort | quote }}}
  - {name: LAKEGATE__WORKERS, value: {{ .Values.workers | quote }}}
  - {name: LAKEGATE__LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
  - {name: LAKEGATE__MAINTENANCE_MODE, value: {{ .Values.maintenanceMode | quote }}}
  - {name: LAKEGATE__PG_SSL_MODE, value: {{ .Values.postgres.embedded | ternary "disable" .Values.postgres.sslMode | quote }}}
  - {name: LAKEGATE__OPENFGA__ENDPOINT, value: {{ include "lakegate.openfgaEndpoint" . | quote }}}
  - {name: LAKEGATE__OPENFGA__STORE_NAME, value: {{ .Values.openfga.storeName | quote }}}
  - {name: LAKEGATE__OPA__URL, value: {{ include "lakegate.opaUrl" . | quote }}}
  - {name: LAKEGATE__OPENID_PROVIDER_URI, value: {{ required "oidc.issuer must be set" .Values.oidc.issuer | quote }}}
  - {name: LAKEGATE__OPENID_AUDIENCE, value: {{ .Values.oidc.audience | quote }}}
{{- if .Values.baseUri }}
  - {name: LAKEGATE__BASE_URI, value: {{ .Values.baseUri | quote }}}
{{- end }}
{{- if .Values.kubernetesAuthentication.enabled }}
  - {name: LAKEGATE__ENABLE_KUBERNETES_AUTHENTICATION, value: "true"}
  - {name: LAKEGATE__KUBERNETES_AUTHENTICATION_AUDIENCE, value: {{ .Values.kubernetesAuthentication.audience | quote }}}
{{- end }}
{{- /* Helm parses numbers as floats; toJson keeps 10485760 an integer. */}}
{{- range $name, $value := .Values.settings }}
  - {name: LAKEGATE__{{ $name }}, value: {{ (kindIs "string" $value | ternary $value (toJson $value)) | quote }}}
{{- end }}
{{- if .Values.certificates.configMapName }}
  - {name: SSL_CERT_DIR, value: /etc/lakegate/certificates}
{{- end }}
{{- end -}}

{{- define "lakegate.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: secrets
  mountPath: /etc/lakegate/secrets
  readOnly: true
{{- if .Values.certificates.configMapName }}
- name: certificates
  mountPath: /etc/lakegate/certificates
  readOnly: true
{{- end }}
{{- end -}}

{{- define "lakegate.volumes" -}}
- name: tmp
  emptyDir: {}
- name: secrets
  secret:
    secretName: {{ include "lakegate.secretName" . }}
    defaultMode: 0440
    items:
{{- range concat (list "PG_DATABASE_URL_WRITE" "PG_ENCRYPTION_KEY" "OPENFGA__API_KEY" "OPA__TOKEN") .Values.secretSettings }}
      - {key: {{ . }}, path: {{ . }}}
{{- end }}
{{- if .Values.certificates.configMapName }}
- name: certificates
  configMap:
    name: {{ .Values.certificates.configMapName }}
{{- end }}
{{- end -}}

{{- /* The part of a pod that is the same for all parts of the release. */ -}}
{{- define "lakegate.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The pod of a Job of the gateway; the argument is (list $ "migrate" (list "migrate")). It has no service account's token. */ -}}
{{- define "lakegate.jobPod" -}}
{{- $root := index . 0 -}}
metadata:
  labels: {{- include "lakegate.partSelector" (list $root (index . 1)) | nindent 4 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {{- include "lakegate.podSecurity" $root | nindent 4 }}
  {{- include "lakegate.placement" $root | nindent 2 }}
  containers:
    - name: {{ index . 1 }}
      image: {{ include "lakegate.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ index . 2 | toJson }}
      {{- include "lakegate.environment" $root | nindent 6 }}
      securityContext: {{- include "lakegate.containerSecurity" $root | nindent 8 }}
      resources: {{- toYaml $root.Values.resources | nindent 8 }}
      volumeMounts: {{- include "lakegate.mounts" $root | nindent 8 }}
  volumes: {{- include "lakegate.volumes" $root | nindent 4 }}
{{- end -}}

{{- /* An init container that writes OpenFGA's configuration from the Secret. OpenFGA reads no secret from a file of its own, and
a newline at the end of a key of the Secret would be a part of its key. */ -}}
{{- define "lakegate.openfgaConfiguration" -}}
- name: configuration
  image: {{ include "lakegate.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: ["python", "-c", {{ .Files.Get "files/configure.py" | toJson }}]
  securityContext: {{- include "lakegate.containerSecurity" . | nindent 4 }}
  resources:
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 128Mi}
  volumeMounts:
    - {name: secrets, mountPath: /secrets, readOnly: true}
    - {name: configuration, mountPath: /etc/openfga}
{{- end -}}

{{- define "lakegate.openfgaVolumes" -}}
- name: secrets
  secret:
    secretName: {{ include "lakegate.secretName" . }}
    defaultMode: 0440
    items:
      - {key: OPENFGA_DATASTORE_URI, path: OPENFGA_DATASTORE_URI}
      - {key: OPENFGA__API_KEY, path: OPENFGA__API_KEY}
- name: configuration
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end -}}

{{- /* One container of OpenFGA; the argument is (list $ "run"). */ -}}
{{- define "lakegate.openfgaContainer" -}}
{{- $root := index . 0 -}}
name: openfga
image: {{ $root.Values.openfga.image }}
args: {{ list (index . 1) | toJson }}
env:
  # OpenFGA's defaults are an enabled playground and open CORS.
  - {name: OPENFGA_PLAYGROUND_ENABLED, value: "false"}
  - {name: OPENFGA_PROFILER_ENABLED, value: "false"}
  # The gateway's setting OPENFGA__SERVER_TIMEOUT must have this value. After it, the outcome of a write is final.
  - {name: OPENFGA_REQUEST_TIMEOUT, value: 3s}
  - {name: OPENFGA_LOG_FORMAT, value: json}
  # A larger heap reduces CPU time by a quarter (docs/performance.md).
  - {name: GOGC, value: "400"}
securityContext: {{- include "lakegate.containerSecurity" $root | nindent 2 }}
resources: {{- toYaml $root.Values.openfga.resources | nindent 2 }}
volumeMounts:
  - {name: configuration, mountPath: /etc/openfga, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "lakegate.openfgaPod" -}}
automountServiceAccountToken: false
securityContext: {{- include "lakegate.podSecurity" . | nindent 2 }}
{{- include "lakegate.placement" . | nindent 0 }}
initContainers: {{- include "lakegate.openfgaConfiguration" . | nindent 2 }}
volumes:
  {{- include "lakegate.openfgaVolumes" . | nindent 2 }}
  - name: tmp
    emptyDir: {}
{{- end -}}

{{- /* The NetworkPolicy of a part with one port; the argument is (list $ "opa" "http" peers). */ -}}
{{- define "lakegate.closedPart" -}}
{{- $root := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "lakegate.name" $root }}-{{ index . 1 }}
  labels: {{- include "lakegate.partLabels" (list $root (index . 1)) | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "lakegate.partSelector" (list $root (index . 1)) | nindent 6 }}
  policyTypes: ["Ingress"]
  ingress:
    - ports:
        - port: {{ index . 2 }}
      from: {{- toYaml (index . 3) | nindent 8 }}
{{- end -}}
