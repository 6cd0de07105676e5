{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "lakegate.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakegate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lakegate.labels" -}}
{{ include "lakegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "lakegate.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "lakegate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "lakegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}

{{- /* The environment of every container: settings from the ConfigMap, each secret by its own key of the Secret. */ -}}
{{- define "lakegate.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "lakegate.name" . }}
env:
{{- range list "PG_DATABASE_URL_WRITE" "PG_ENCRYPTION_KEY" "OPENFGA__API_KEY" "OPA__TOKEN" }}
  - name: LAKEGATE__{{ . }}
    valueFrom:
      secretKeyRef:
        name: {{ $.Values.secretName }}
        key: {{ . }}
{{- end }}
{{- range list "PG_ENCRYPTION_KEY_OTHER" "PG_DATABASE_URL_READ" "KV2__PASSWORD" "KV2__SECRET_ID" }}
  - name: LAKEGATE__{{ . }}
    valueFrom:
      secretKeyRef:
        name: {{ $.Values.secretName }}
        key: {{ . }}
        optional: true
{{- end }}
{{- if .Values.certificates.configMapName }}
  - name: SSL_CERT_DIR
    value: /etc/lakegate/certificates
{{- end }}
{{- end -}}

{{- define "lakegate.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.certificates.configMapName }}
- name: certificates
  mountPath: /etc/lakegate/certificates
  readOnly: true
{{- end }}
{{- end -}}

{{- define "lakegate.volumes" -}}
- name: tmp
  emptyDir: {}
{{- if .Values.certificates.configMapName }}
- name: certificates
  configMap:
    name: {{ .Values.certificates.configMapName }}
{{- end }}
{{- end -}}
