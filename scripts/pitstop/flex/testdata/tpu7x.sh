# tpu7x-standard-4t (TPU7x), topology 4x4x4: 64 chips at 4 a machine are 16 machines.
# This needs GKE 1.34.0-gke.2201000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing
# Autopilot makes the machines itself and refuses privileged containers: there leave out 1, 2, privileged: true, and the node pool in 5.

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud compute resource-policies create workload-policy tpu-flex-4x4x4 \
    --region=us-central1 \
    --type=HIGH_THROUGHPUT \
    --accelerator-topology=4x4x4
gcloud container node-pools create tpu-flex \
    --cluster=CLUSTER \
    --location=us-central1-c \
    --node-locations=us-central1-c \
    --machine-type=tpu7x-standard-4t \
    --placement-policy=tpu-flex-4x4x4 \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=16 \
    --no-enable-autorepair

# 2. Check it.
gcloud container node-pools describe tpu-flex --cluster=CLUSTER --location=us-central1-c --format=json |
    pitstop flex check --topology 4x4x4 -

# 3. The training. When a machine is lost, this Job stays Failed until Pitstop or a person makes it again.
# With --jobset, JobSet begins again by itself.
# Pitstop asks for a save before the 7 days end, and brings the training back once it has failed for good. For that it needs
#   in its policy file:   policies: {POLICY: {preset: spot, switches: {recreate_non_spot: yes}}}
#   in terraform.tfvars:  clusters = ["us-central1-c/CLUSTER"], allow = ["request_checkpoint", "restart", "recreate_non_spot"]
#   and in the cluster what pitstop gke rbac prints. terraform/README.md has each step, under Jobs of GKE.
kubectl apply -f - <<'EOF'
apiVersion: v1
kind: Service
metadata:
  name: training-workers
spec:
  clusterIP: None
  selector:
    batch.kubernetes.io/job-name: training
---
apiVersion: batch/v1
kind: Job
metadata:
  name: training
  labels:
    pitstop-policy: POLICY
  annotations:
    pitstop-checkpoint-dir: gs://BUCKET/run
spec:
  completionMode: Indexed
  parallelism: 16
  completions: 16
  backoffLimit: 0
  podReplacementPolicy: Failed
  template:
    spec:
      subdomain: training-workers
      restartPolicy: Never
      terminationGracePeriodSeconds: 300
      nodeSelector:
        cloud.google.com/gke-flex-start: "true"
        cloud.google.com/gke-tpu-accelerator: tpu7x
        cloud.google.com/gke-tpu-topology: 4x4x4
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
              value: us-central1-c/CLUSTER
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
              google.com/tpu: 4
            limits:
              google.com/tpu: 4
EOF

# 4. Watch it. Pods wait as Pending until Google has the machines.
kubectl get job/training
kubectl get pods --selector=batch.kubernetes.io/job-name=training --output=wide
kubectl get nodes --selector=cloud.google.com/gke-flex-start=true --label-columns=cloud.google.com/gke-tpu-topology

# 5. Clean up.
kubectl delete job/training service/training-workers
gcloud container node-pools delete tpu-flex --cluster=CLUSTER --location=us-central1-c
gcloud compute resource-policies delete tpu-flex-4x4x4 --region=us-central1
# If the cluster was made for this training alone:
# gcloud container clusters delete CLUSTER --location=us-central1-c
