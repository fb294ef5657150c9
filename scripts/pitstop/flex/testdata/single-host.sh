# ct6e-standard-8t (v6e), topology 2x4: 8 chips at 8 a machine are 1 machine.
# This needs GKE 1.33.0-gke.1712000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing
# Autopilot makes the machines itself and refuses privileged containers: there leave out 1, 2, privileged: true, and the node pool in 5.

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud container node-pools create tpu-flex \
    --cluster=CLUSTER \
    --location=us-east5 \
    --node-locations=us-east5-a \
    --machine-type=ct6e-standard-8t \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=1

# 2. Check it.
gcloud container node-pools describe tpu-flex --cluster=CLUSTER --location=us-east5 --format=json |
    pitstop flex check --topology 2x4 -

# 3. The training. When the machine is lost, the Job makes a new Pod, and pitcrew resumes from the last checkpoint.
# Pitstop asks for a save before the 7 days end, and brings the training back once it has failed for good. For that it needs
#   in its policy file:   policies: {POLICY: {preset: spot, switches: {recreate_non_spot: yes}}}
#   in terraform.tfvars:  clusters = ["us-east5/CLUSTER"], allow = ["request_checkpoint", "restart", "recreate_non_spot"]
#   and in the cluster what pitstop gke rbac prints. terraform/README.md has each step, under Jobs of GKE.
kubectl apply -f - <<'EOF'
apiVersion: batch/v1
kind: Job
metadata:
  name: training
  labels:
    pitstop-policy: POLICY
  annotations:
    pitstop-checkpoint-dir: gs://BUCKET/run
spec:
  parallelism: 1
  completions: 1
  backoffLimit: 12
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      - action: FailJob
        onExitCodes:
          containerName: training
          operator: In
          values: [2, 126, 127]
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 300
      nodeSelector:
        cloud.google.com/gke-flex-start: "true"
        cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice
        cloud.google.com/gke-tpu-topology: 2x4
      containers:
        - name: training
          image: IMAGE
          securityContext:
            privileged: true
          ports:
            - containerPort: 8471
            - containerPort: 8431
          env:
            - name: PITCREW_CLUSTER
              value: us-east5/CLUSTER
            - name: PITCREW_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: PITCREW_POD
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: PITCREW_JOB
              valueFrom:
                fieldRef:
                  fieldPath: metadata.labels['batch.kubernetes.io/job-name']
            - name: PITCREW_JOB_UID
              valueFrom:
                fieldRef:
                  fieldPath: metadata.labels['batch.kubernetes.io/controller-uid']
          command: [pitcrew, run, '--checkpoint-dir=gs://BUCKET/run', --, python3, train.py]
          resources:
            requests:
              google.com/tpu: 8
            limits:
              google.com/tpu: 8
EOF

# 4. Watch it. Pods wait as Pending until Google has the machines.
kubectl get job/training
kubectl get pods --selector=batch.kubernetes.io/job-name=training --output=wide
kubectl get nodes --selector=cloud.google.com/gke-flex-start=true --label-columns=cloud.google.com/gke-tpu-topology

# 5. Clean up.
kubectl delete job/training
gcloud container node-pools delete tpu-flex --cluster=CLUSTER --location=us-east5
# If the cluster was made for this training alone:
# gcloud container clusters delete CLUSTER --location=us-east5
